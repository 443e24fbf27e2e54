"""Writes small inspect_ai logs with the tool itself and its mock model; run with inspect_ai 0.3.26x installed."""

from __future__ import annotations

import sys, pathlib
from inspect_ai import Task, eval as run
from inspect_ai.dataset import Sample, MemoryDataset
from inspect_ai.model import ModelOutput, get_model, ChatMessageUser
from inspect_ai.scorer import match, includes, scorer, accuracy, mean, Score, Target
from inspect_ai.solver import generate, TaskState

out = pathlib.Path(sys.argv[1])


@scorer(metrics=[mean()])
def length():
    async def score(state: TaskState, target: Target) -> Score:
        return Score(
            value=len(state.output.completion),
            metadata={"words": len(state.output.completion.split())},
        )

    return score


@scorer(metrics={"right": [mean()], "brief": [mean()]})
def graded():
    async def score(state: TaskState, target: Target) -> Score:
        text = state.output.completion
        return Score(
            value={"right": float(target.text in text), "brief": 1 if len(text) < 20 else 0},
            answer=text[-1:],
        )

    return score


LONG = "A long prefix of the problem. " * 5
samples = [
    Sample(
        id="sum/1",
        input=LONG + "What is 1 + 1?",
        target="2",
        metadata={"subject": "sums", "level": 1},
    ),
    Sample(
        id="sum/2",
        input=[ChatMessageUser(content="What is 2 + 2? \u00e9\U0001f600")],
        target=["4", "four"],
        metadata={"subject": "sums", "level": 2},
    ),
    Sample(
        id=3,
        input="What is 3 + 3?",
        target="6",
        choices=["5", "6"],
        metadata={"subject": "sums", "level": 3},
    ),
]
texts = ["It is 2", "ANSWER: 4", "no idea, so 5", LONG + "so it is 2", "4", "6"]


def task():
    return Task(
        dataset=MemoryDataset(samples, name="sums"),
        solver=generate(),
        scorer=[match(), length(), graded()],
        epochs=2,
        name="sums",
    )


def outputs():
    made = [
        ModelOutput.from_content(
            "mockllm/model", text, stop_reason="max_tokens" if "idea" in text else "stop"
        )
        for text in texts
    ]
    return made


# The tool asks the network for a table of tokens to estimate a length; this counts words instead.
import inspect_ai.model._model as _model


async def words(self, *args, **options):
    return len(str(args).split())


for name in ("count_text_tokens", "count_tokens"):
    setattr(_model.ModelAPI, name, words)

for fmt in ("eval", "json"):
    (log,) = run(
        task(),
        model=get_model("mockllm/model", custom_outputs=outputs()),
        log_dir=str(out),
        log_format=fmt,
        display="none",
        max_connections=1,
        max_samples=1,
        log_level="error",
    )
    print(fmt, log.status, log.location)

# The same samples with a folder for each, as logs of long samples have them.
from inspect_ai.log._recorders.chunked import convert_eval_logs_to_chunked

(archive,) = out.glob("*.eval")
convert_eval_logs_to_chunked(
    str(archive), str(out / "folders"), chunk_size=2, attachments_chunk_bytes=500
)
