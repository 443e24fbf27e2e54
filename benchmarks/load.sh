#!/usr/bin/env bash
# Run the tests that could depend on time beside busy loops, and append a line per run to
# benchmarks/results/load_runs.txt: date, commit, load of the machine at the start, passed, failed, seconds.
#
#   bash benchmarks/load.sh [runs, 5 [busy loops, 2 [arguments of pytest in the place of the list below]]]
#
# `bash benchmarks/load.sh 5 2 -n 2` runs the whole suite. The status is 1 if a test of any run has failed.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
runs=${1:-5} loops=${2:-2}
shift $(($# < 2 ? $# : 2))
# Processes, kills and signals, servers, threads, terminals, browsers, Ray.
tests=("$@")
[[ $# -gt 0 ]] || tests=(-n 0 tests/cli/test_jobs.py tests/cli/test_process.py tests/cli/test_search.py
    tests/unit/batch/test_batch_job.py tests/unit/batch/test_batch_ray.py
    tests/unit/batch/test_batch_ray_cluster.py tests/unit/batch/test_batch_progress.py
    tests/unit/search/test_servers.py tests/unit/search/test_served_transformer.py
    tests/unit/process/test_annotation_cache.py tests/unit/process/test_annotation_server.py
    tests/unit/answers/test_worker.py tests/unit/votes/test_pools.py
    tests/charts/test_browser.py tests/charts/test_layout.py)

result=benchmarks/results/load_runs.txt output=$(mktemp) busy=() status=0
trap 'kill "${busy[@]}" 2>/dev/null || true; rm -f "$output"' EXIT
for ((i = 0; i < loops; i++)); do
    while :; do :; done &
    busy+=($!)
done
commit=$(git rev-parse --short HEAD)$(git diff --quiet HEAD || echo +)
for ((i = 0; i < runs; i++)); do
    start=$SECONDS load=$(cut -d' ' -f1 /proc/loadavg)
    pytest -q "${tests[@]}" >"$output" 2>&1 || status=1
    last=$(grep -E '(passed|failed|error).* in ' "$output" | tail -n 1 || true)
    printf '%s  %s  %s cores  %s busy loops  load %s  %s tests: %s  %s s\n' "$(date -u +%FT%RZ)" \
        "$commit" "$(nproc)" "$loops" "$load" "$([[ $# -gt 0 ]] && echo "$*" || echo time-sensitive)" \
        "${last:-did not end}" $((SECONDS - start)) | tee -a "$result"
    grep -E '^(FAILED|ERROR) ' "$output" | sed 's/^/    /' | tee -a "$result" || true
done
exit "$status"
