"""Writes small lm-evaluation-harness logs with the tool itself and a model that recites; lm_eval 0.4.13."""

from __future__ import annotations

import json, pathlib, sys, tempfile
import lm_eval
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager

out = pathlib.Path(sys.argv[1])
folder = pathlib.Path(tempfile.mkdtemp())
docs = [
    {"question": "What is 1 + 1?", "answer": "1 + 1 = 2\n#### 2", "final": "2"},
    {"question": "What is 2 + 2?", "answer": "2 + 2 = 4\n#### 4", "final": "4"},
    {"question": "What is 3 + 3? \u00e9\U0001f600", "answer": "3 + 3 = 6\n#### 6", "final": "6"},
]
(folder / "docs.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in docs))
TASK = """
task: {name}
dataset_path: json
dataset_kwargs:
  data_files:
    test: {data}
test_split: test
output_type: {kind}
doc_to_text: "Question: {{{{question}}}}\\nAnswer:"
doc_to_target: "{target}"
{more}
metric_list:
  - metric: {metric}
    aggregation: mean
    higher_is_better: true
"""
FILTERS = """
generation_kwargs: {{until: ["Question:"], do_sample: true, temperature: 0.8}}
repeats: {repeats}
filter_list:
  - name: strict-match
    filter:
      - function: regex
        regex_pattern: "#### (-?[0-9.]+)"
      - function: take_first
  - name: flexible-extract
    filter:
      - function: regex
        group_select: -1
        regex_pattern: "(-?[0-9]+)"
      - function: take_first
"""
MAJORITY = """
generation_kwargs: {{until: ["Question:"], do_sample: true, temperature: 0.8}}
repeats: {repeats}
filter_list:
  - name: maj@4
    filter:
      - function: regex
        group_select: -1
        regex_pattern: "(-?[0-9]+)"
      - function: majority_vote
      - function: take_first
"""
CHOICE = "doc_to_choice: ['2', '4', '6']"
TASKS = {
    "sums": (
        "generate_until",
        "{{answer.split('####')[-1].strip()}}",
        FILTERS.format(repeats=1),
        "exact_match",
    ),
    "sums_repeated": ("generate_until", "{{answer}}", FILTERS.format(repeats=4), "exact_match"),
    "sums_majority": ("generate_until", "{{final}}", MAJORITY.format(repeats=4), "exact_match"),
    "sums_choice": ("multiple_choice", "{{final}}", CHOICE, "acc"),
}
for name, (kind, target, more, metric) in TASKS.items():
    (folder / f"{name}.yaml").write_text(
        TASK.format(
            name=name,
            data=folder / "docs.jsonl",
            kind=kind,
            target=target,
            more=more,
            metric=metric,
        )
    )

TEXTS = [
    "so it is\n#### 2",
    "maybe 3 then 4",
    "I do not know",
    "#### 6",
    " 4 and \u221a2",
    "#### 7",
]


@register_model("reciter")
class Reciter(LM):
    def __init__(self, **_):
        super().__init__()
        self.n = 0

    @classmethod
    def create_from_arg_string(cls, *_, **__):
        return cls()

    def generate_until(self, requests, disable_tqdm=False):
        texts = []
        for _ in requests:
            texts.append(TEXTS[self.n % len(TEXTS)])
            self.n += 1
        return texts

    def loglikelihood(self, requests, disable_tqdm=False):
        return [(-float(len(str(r.args))) / 7, False) for r in requests]

    def loglikelihood_rolling(self, requests, disable_tqdm=False):
        return [0.0 for _ in requests]


tracker = EvaluationTracker(output_path=str(out))
results = lm_eval.simple_evaluate(
    model="reciter",
    tasks=list(TASKS),
    log_samples=True,
    evaluation_tracker=tracker,
    task_manager=TaskManager(include_path=str(folder), include_defaults=False),
    bootstrap_iters=0,
)
samples = results.pop("samples")
tracker.save_results_aggregated(results=results, samples=samples)
for name in TASKS:
    tracker.save_results_samples(task_name=name, samples=samples[name])
