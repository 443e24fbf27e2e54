"""Writes lighteval's details with its own classes (lighteval 0.13): asdict(Detail), as EvaluationTracker.save does.

Run as: make_lighteval.py OUT SOURCE, with the unpacked wheel and `datasets` installed; torch is replaced by a stub.
"""

from __future__ import annotations

import sys, types, pathlib, importlib, dataclasses, enum


class Stub(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.split(".")[0] in {
            "torch",
            "transformers",
            "accelerate",
            "colorama",
            "termcolor",
            "nltk",
            "aenum",
            "pytablewriter",
            "latex2sympy2_extended",
            "git",
        }:
            from importlib.machinery import ModuleSpec

            return ModuleSpec(name, Finder, is_package=True)

    @staticmethod
    def create_module(spec):
        return Stub(spec.name)

    @staticmethod
    def exec_module(module):
        pass


sys.meta_path.append(Finder)
sys.path.insert(0, sys.argv[2])
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc, SamplingMethod
from dataclasses import asdict, dataclass

sys.meta_path.remove(Finder)
for name in [name for name, module in sys.modules.items() if isinstance(module, Stub)]:
    del sys.modules[name]
from datasets import Dataset


@dataclass
class Detail:  # DetailsLogger.Detail in lighteval/logging/info_loggers.py
    doc: Doc
    model_response: ModelResponse
    metric: dict


out = pathlib.Path(sys.argv[1])
out.mkdir(exist_ok=True, parents=True)


def save(name, details):  # EvaluationTracker.save and save_details
    dataset = Dataset.from_list([asdict(detail) for detail in details])
    names = [each for each in dataset.column_names if each != "id"]
    with (out / f"details_{name}_2026-01-01T00-00-00.parquet").open("wb") as f:
        dataset.select_columns(sorted(names)).to_parquet(f)


def doc(number, query, choices, gold, **more):
    return Doc(
        query=query,
        choices=choices,
        gold_index=gold,
        id=str(number),
        task_name="sums|0",
        num_samples=2,
        sampling_methods=[SamplingMethod.GENERATIVE],
        specific={"level": number},
        **more,
    )


save(
    "sums|0",
    [
        Detail(
            doc(0, "What is 1 + 1?", ["1 + 1 = \\boxed{2}"], 0),
            ModelResponse(
                input="What is 1 + 1?",
                input_tokens=[1, 2, 3],
                text=["so \\boxed{2}", "5"],
                output_tokens=[[4, 5], [6]],
                text_post_processed=["\\boxed{2}", "5"],
                reasonings=["hm", None],
            ),
            {"pass@k:k=1": 0.5, "em": 1},
        ),
        Detail(
            doc(1, "What is 2 + 2? \u00e9", ["3", "4"], 1),
            ModelResponse(
                input="What is 2 + 2?",
                input_tokens=[1, 2],
                text=["", "it is 4"],
                output_tokens=[[], [7, 8, 9]],
            ),
            {"pass@k:k=1": 0.0, "em": 0},
        ),
    ],
)
save(
    "names|5",
    [
        Detail(
            Doc(
                query="Name a color",
                choices=["red", "blue", "four"],
                gold_index=[0, 1],
                id="0",
                task_name="names|5",
            ),
            ModelResponse(text=["blue"], output_tokens=[[4]]),
            {"em": 1.0},
        ),
        Detail(
            Doc(
                query="Name a number",
                choices=["red", "four"],
                gold_index=[1],
                id="1",
                task_name="names|5",
            ),
            ModelResponse(text=["five"], output_tokens=[[5]]),
            {"em": 0.0},
        ),
    ],
)
