"""Coverage-guided fuzzing of extraction, keys and grading with atheris, which is no dependency.

The branches of ``ttsframe.answers`` that an input reaches guide the next inputs. The first finding
ends the run, with the input in a file ``crash-...``.

    pip install atheris && python benchmarks/fuzz_guided.py [seconds, 3600]
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import atheris  # type: ignore[import-not-found,unused-ignore]

with atheris.instrument_imports(include=["ttsframe.answers"]):
    import ttsframe as tts
    from ttsframe.answers import explain_extraction, grade_one, key_of

CASES = Path(__file__).parents[1] / "tests" / "data"


def one_input(data: bytes) -> None:
    """Read a text as a completion and as an answer."""
    text = data.decode("utf-8", "replace")
    found = explain_extraction(text).answer
    if found == "":
        raise RuntimeError("an empty answer")
    key_of(text)
    grade_one(text, text)


def main(seconds: int) -> None:
    """Begin with the labelled cases of the tests."""
    assert tts.__version__
    corpus = Path(tempfile.mkdtemp(prefix="ttsframe-fuzz-"))
    for name, fields in (("answer_pairs", ("a", "b")), ("answer_extractions", ("text",))):
        for i, line in enumerate((CASES / f"{name}.jsonl").read_bytes().splitlines()):
            for field in fields:
                (corpus / f"{name}-{i}-{field}").write_bytes(
                    json.loads(line)[field].encode()[:2_000]
                )
    options = [f"-max_total_time={seconds}", "-max_len=400", "-timeout=60", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], *options, str(corpus)], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main(int((*sys.argv[1:], 3_600)[0]))
