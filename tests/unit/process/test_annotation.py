"""Rollouts of steps: which prefixes are completed, how often, and how they are graded."""

from __future__ import annotations

import copy
import json
import pickle
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.errors import (
    ColumnsError,
    CompletionError,
    DataError,
    ParameterError,
    ParameterTypeError,
)


def solutions(texts: dict[tuple[str, str], list[str]], gold: str | None = "47") -> pl.DataFrame:
    """Return a steps table: the texts of the steps by problem and solution."""
    rows = [
        (problem, solution, step, f"Problem {problem}?", text, gold)
        for (problem, solution), listed in texts.items()
        for step, text in enumerate(listed)
    ]
    return pl.DataFrame(
        rows,
        orient="row",
        schema={
            "problem_id": pl.String,
            "solution_id": pl.String,
            "step": pl.Int64,
            "problem": pl.String,
            "text": pl.String,
            "gold": pl.String,
        },
    )


SHARED = {
    ("p", "a"): ["7 x 6 = 42", "42 + 5 = 47", "The answer is 47."],
    ("p", "b"): ["7 x 6 = 42", "42 + 5 = 48", "The answer is 48."],
    ("p", "c"): ["7 x 6 = 42", "42 + 5 = 47", "so I am done"],
    ("q", "a"): ["7 x 6 = 42", "no idea"],
}


class Recorder:
    """Completes with 47 and 46 in turn, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.calls: list[tuple[list[str], int]] = []

    def __call__(self, prefixes: list[str], n: int) -> list[list[str]]:
        self.calls.append((prefixes, n))
        return [[f"The answer is {47 - i % 2}." for i in range(n)] for _ in prefixes]

    @property
    def prefixes(self) -> list[str]:
        return [prefix for prefixes, _ in self.calls for prefix in prefixes]


def prefixes_of(frame: pl.DataFrame, template: str, separator: str, *, problem: bool) -> list[str]:
    """Say in plain Python what the prefixes are, in order and with repetition."""
    before, rest = template.split("{problem}")
    between = rest.removesuffix("{steps}")
    made = []
    for (p, s), rows in sorted(frame.group_by("problem_id", "solution_id")):
        ordered = sorted(rows.to_dicts(), key=lambda row: row["step"])
        context = before + ordered[0]["problem"] + between
        if problem:
            made.append(context)
        for i in range(len(ordered)):
            steps = [row["text"] + separator for row in ordered[: i + 1]]
            made.append(context + "".join(steps))
        assert isinstance(p, str)
        assert isinstance(s, str)
    return made


@pytest.mark.parametrize("include_problem", [False, True])
@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_each_distinct_prefix_is_completed_once(include_problem: bool, batch_size: int) -> None:
    completer = Recorder()
    template = "<{x}> {problem} Solve it.\n{steps}"
    rollouts = tts.process.annotate(
        solutions(SHARED),
        completer,
        4,
        template=template,
        separator=" ;\n",
        include_problem=include_problem,
        final_step="sample",
        batch_size=batch_size,
    )
    everything = prefixes_of(solutions(SHARED), template, " ;\n", problem=include_problem)
    assert completer.prefixes == list(dict.fromkeys(everything))
    assert {n for _, n in completer.calls} == {4}
    assert max(len(prefixes) for prefixes, _ in completer.calls) <= batch_size
    assert rollouts.height == 4 * len(everything)
    ids = rollouts.unique(["problem_id", "solution_id", "step"]).sort(
        "problem_id", "solution_id", "step"
    )["prefix_id"]
    assert [everything.index(prefix) for prefix in everything] == [
        ids.to_list().index(prefix_id) for prefix_id in ids
    ]


def test_the_columns_are_those_of_the_contract() -> None:
    rollouts = tts.process.annotate(solutions(SHARED), Recorder(), 2)
    assert dict(rollouts.schema) == {
        "problem_id": pl.String(),
        "solution_id": pl.String(),
        "step": pl.Int64(),
        "rollout": pl.UInt32(),
        "prefix_id": pl.String(),
        "is_sampled": pl.Boolean(),
        "completion": pl.String(),
        "finish_reason": pl.String(),
        "answer": pl.String(),
        "answer_key": pl.String(),
        "gold": pl.String(),
        "gold_key": pl.String(),
        "is_correct": pl.Boolean(),
    }
    assert (
        not rollouts.select(pl.col("completion", "is_correct").is_null().any()).row(0).count(True)
    )
    assert rollouts.unique(["problem_id", "solution_id", "step", "rollout"]).height == (
        rollouts.height
    )


def test_a_finished_solution_is_graded_and_not_sampled() -> None:
    completer = Recorder()
    rollouts = tts.process.annotate(solutions(SHARED), completer, 2)
    last = rollouts.filter(pl.col("step") == 2, pl.col("rollout") == 1)
    found = last.select("solution_id", "is_sampled", "completion", "answer", "is_correct").rows()
    assert found == [
        ("a", False, "", "47", True),
        ("b", False, "", "48", False),
        ("c", True, "The answer is 46.", "46", False),  # it states no answer: a step like others
    ]
    assert not any("The answer" in prefix for prefix in completer.prefixes)
    skipped = tts.process.annotate(solutions(SHARED), Recorder(), 2, final_step="skip")
    assert_frame_equal(skipped, rollouts.filter("is_sampled"))


def test_a_solution_that_is_cut_off_at_a_conclusion_is_not_finished() -> None:
    texts = {
        ("p", str(i)): ["so", last]
        for i, last in enumerate([
            "Therefore, x = 47.",
            r"so \boxed{47}",
            "#### 47",
            "The answer is 47",
            r"so \boxed{4",
        ])
    }
    rollouts = tts.process.annotate(solutions(texts), Recorder(), 1)
    finished = rollouts.filter(~pl.col("is_sampled"))
    assert finished.select("solution_id", "step").rows() == [("1", 1), ("2", 1), ("3", 1)]
    assert finished["is_correct"].all()
    boxed = tts.process.annotate(solutions(texts), Recorder(), 1, style="boxed")
    assert boxed.filter(~pl.col("is_sampled"))["solution_id"].to_list() == ["1"]


def test_a_prefix_that_ends_one_solution_is_sampled_where_another_goes_on() -> None:
    texts = {
        ("p", "a"): ["The answer is 47."],
        ("p", "b"): ["The answer is 47.", "I hope it helps."],
    }
    completer = Recorder()
    rollouts = tts.process.annotate(solutions(texts), completer, 2)
    assert rollouts.select("solution_id", "step", "rollout", "answer").rows() == [
        ("a", 0, 0, "47"),
        ("a", 0, 1, "47"),
        ("b", 0, 0, "47"),
        ("b", 0, 1, "46"),
        ("b", 1, 0, "47"),
        ("b", 1, 1, "47"),  # the whole solution states it, wherever that is
    ]
    assert completer.prefixes == ["Problem p?\n\nThe answer is 47.\n"]
    assert rollouts["prefix_id"].n_unique() == 2


def test_sampled_final_steps_without_a_new_answer_keep_the_solutions_own() -> None:
    texts = {("p", "a"): ["42 + 5", "The answer is 47."], ("p", "b"): ["42 + 6"]}

    def completer(prefixes: list[str], n: int) -> list[list[str]]:
        return [["", "The answer is 1.", "I stop here"][:n] for _ in prefixes]

    rollouts = tts.process.annotate(solutions(texts), completer, 3, final_step="sample")
    assert rollouts.select("solution_id", "step", "answer", "is_correct").rows() == [
        ("a", 0, None, False),
        ("a", 0, "1", False),
        ("a", 0, None, False),
        ("a", 1, "47", True),
        ("a", 1, "1", False),
        ("a", 1, "47", True),
        ("b", 0, None, False),
        ("b", 0, "1", False),
        ("b", 0, None, False),
    ]


@pytest.mark.parametrize("lazy", [False, True])
def test_the_order_of_the_rows_does_not_matter(lazy: bool) -> None:
    frame = solutions(SHARED).with_columns(extra=pl.lit(1))
    first, second = Recorder(), Recorder()
    expected = tts.process.annotate(frame, first, 3, include_problem=True)
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=3)
    found = tts.process.annotate(
        shuffled.lazy() if lazy else shuffled, second, 3, include_problem=True
    )
    assert_frame_equal(found, expected)
    assert first.calls == second.calls


def test_the_problem_itself_is_step_minus_one() -> None:
    frame = solutions(SHARED)
    bare = frame.filter(pl.col("step") == 0).with_columns(
        step=pl.lit(-1, pl.Int64), text=pl.lit(None, pl.String)
    )
    completer = Recorder()
    rollouts = tts.process.annotate(frame, completer, 2, include_problem=True)
    with_rows = tts.process.annotate(pl.concat([bare, frame]), Recorder(), 2, include_problem=True)
    assert_frame_equal(with_rows, rollouts)
    without = tts.process.annotate(pl.concat([bare, frame]), Recorder(), 2)
    assert_frame_equal(without, rollouts.filter(pl.col("step") >= 0))
    assert rollouts.filter(pl.col("step") == -1)["prefix_id"].n_unique() == 2
    assert completer.prefixes[0] == "Problem p?\n\n"
    only = tts.process.annotate(bare, Recorder(), 2, include_problem=True)
    assert only["step"].unique().to_list() == [-1]
    assert tts.process.annotate(bare, Recorder(), 2).is_empty()


def test_values_of_steps_are_those_of_the_completer() -> None:
    chances = [0.1, 0.5, 0.8, 1.0, 0.0]
    texts = {("p", str(i)): [f"chance {chance} of {i}" for chance in chances] for i in range(10)}
    rng = random.Random(7)

    def completer(prefixes: list[str], n: int) -> list[list[str]]:
        listed = []
        for prefix in prefixes:
            chance = float(re.findall(r"chance (\S+)", prefix)[-1])
            draws = [rng.random() < chance for _ in range(n)]
            listed.append([rf"so \boxed{{{47 if draw else 40}}}" for draw in draws])
        return listed

    steps = tts.process.annotate(solutions(texts), completer, 200).pipe(tts.process.estimate_steps)
    means = steps.group_by("step").agg(pl.col("soft").mean()).sort("step")["soft"].to_list()
    for mean, chance in zip(means, chances, strict=True):
        assert abs(mean - chance) <= 4 * (chance * (1 - chance) / 2000) ** 0.5
    assert steps.filter(pl.col("step") == 4)["hard"].any() is False


def test_progress_counts_distinct_rollouts() -> None:
    seen: list[tuple[int, int]] = []

    def progress(n_done: int, n_all: int) -> None:
        seen.append((n_done, n_all))

    tts.process.annotate(solutions(SHARED), Recorder(), 3, batch_size=2, progress=progress)
    n_distinct = 6  # three of p, two of q, and the last of c
    assert seen == [(0, 18), (6, 18), (12, 18), (18, 18)]
    assert seen[-1] == (3 * n_distinct, 3 * n_distinct)


def test_grades_need_a_gold_answer() -> None:
    rollouts = tts.process.annotate(solutions(SHARED, gold=None), Recorder(), 2)
    assert rollouts["is_correct"].null_count() == rollouts.height
    assert rollouts["answer_key"].null_count() == 0


def test_a_prefix_that_problems_share_is_graded_by_the_gold_answer_of_each() -> None:
    frame = solutions({("p", "a"): ["x"], ("q", "a"): ["x"]}).with_columns(
        problem=pl.lit("Pick one."), gold=pl.Series(["47", "46"])
    )
    completer = Recorder()
    rollouts = tts.process.annotate(frame, completer, 2)
    assert completer.prefixes == ["Pick one.\n\nx\n"]
    assert rollouts["prefix_id"].n_unique() == 1
    assert rollouts.select("problem_id", "answer", "is_correct").rows() == [
        ("p", "47", True),
        ("p", "46", False),
        ("q", "47", False),
        ("q", "46", True),
    ]


def test_equivalent_answers_are_right() -> None:
    def completer(prefixes: list[str], n: int) -> list[list[str]]:
        return [[r"\boxed{\frac{94}{2}}", "#### 47.0", "the answer is 48"][:n] for _ in prefixes]

    rollouts = tts.process.annotate(solutions({("p", "a"): ["x"]}), completer, 3)
    assert rollouts["is_correct"].to_list() == [True, True, False]
    boxed = tts.process.annotate(solutions({("p", "a"): ["x"]}), completer, 3, style="boxed")
    assert boxed["is_correct"].to_list() == [True, False, False]


HOSTILE = {
    "nothing": "",
    "blank": " \n\t",
    "a megabyte": "and so on " * 100_000,
    "a megabyte of braces": "\\boxed{" * 150_000,
    "a tower": r"\boxed{9^{9^{9^{9^{9}}}}}",
    "code": r"\boxed{__import__('os').system('false')}",
    "a NUL": "the answer is \x00 47 \x00",
    "half a character": "so \ud800 is not it",
    "no answer": "I could go on for ever",
    "template words": "{problem} {steps} %s",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_completions_are_wrong_and_never_an_error(text: str) -> None:
    frame = solutions({("p", "a"): ["7 x 6 = 42"]})
    rollouts = tts.process.annotate(frame, lambda prefixes, n: [[text] * n for _ in prefixes], 2)
    assert rollouts["is_correct"].to_list() == [False, False] or text == HOSTILE["a NUL"]
    kept = text.replace("\ud800", "\ufffd")
    assert rollouts["completion"].to_list() == [kept, kept]


def test_hostile_problems_and_steps_are_texts_like_others() -> None:
    frame = solutions({("p", "a"): ["{problem}", "{steps} \\ $1 ${x}"]}).with_columns(
        problem=pl.lit("{steps}{problem}$0")
    )
    completer = Recorder()
    tts.process.annotate(frame, completer, 1, template="{problem}|{steps}", separator="/")
    assert completer.prefixes == [
        "{steps}{problem}$0|{problem}/",
        "{steps}{problem}$0|{problem}/{steps} \\ $1 ${x}/",
    ]


def test_a_prefix_knows_where_the_problem_ends() -> None:
    completer = Recorder()
    tts.process.annotate(solutions(SHARED), completer, 1, template="Solve {problem}\n\n{steps}")
    prefix = completer.prefixes[1]
    assert isinstance(prefix, tts.process.Prefix)
    assert (prefix.context, prefix.solution) == (
        "Solve Problem p?\n\n",
        "7 x 6 = 42\n42 + 5 = 47\n",
    )
    for other in (pickle.loads(pickle.dumps(prefix)), copy.copy(prefix), copy.deepcopy(prefix)):  # noqa: S301 - made one line above
        assert other == prefix == prefix.context + prefix.solution
        assert other.solution == prefix.solution


def test_texts_that_only_divide_differently_are_different_prefixes() -> None:
    frame = solutions({("p", "a"): ["x"], ("q", "a"): ["x"]}).with_columns(
        problem=pl.Series(["1", "1x"]), text=pl.Series(["xx", "x"])
    )
    completer = Recorder()
    rollouts = tts.process.annotate(frame, completer, 1, template="{problem}{steps}", separator="")
    assert completer.prefixes == ["1xx", "1xx"]
    assert rollouts["prefix_id"].n_unique() == 2


def test_identifiers_are_kept_as_they_are() -> None:
    frame = solutions(SHARED).with_columns(
        problem_id=pl.col("problem_id").rank("dense").cast(pl.Int16),
        solution_id=pl.col("solution_id").cast(pl.Categorical),
        step=pl.col("step").cast(pl.UInt8),
    )
    rollouts = tts.process.annotate(frame, Recorder(), 2, include_problem=True)
    assert rollouts.schema["problem_id"] == pl.Int16
    assert rollouts.schema["solution_id"] == pl.Categorical
    assert rollouts["step"].min() == -1


def test_no_solutions_give_no_rollouts() -> None:
    completer = Recorder()
    full = tts.process.annotate(solutions(SHARED), Recorder(), 2)
    empty = tts.process.annotate(solutions(SHARED).clear(), completer, 2)
    assert empty.is_empty()
    assert empty.schema == full.schema
    assert not completer.calls


Returned = Callable[[Sequence[str], int], object]

WRONG: dict[str, tuple[Returned, str]] = {
    "nothing": (lambda *_: None, "returned a NoneType, must be a list of 2 lists"),
    "one text": (lambda *_: "47", "returned a str, must be a list of 2 lists"),
    "too few lists": (lambda *_: [["47", "46"]], "returned 1 lists, must be 2"),
    "flat": (lambda *_: ["47", "46"], "for prefix 0 of the batch, returned a str"),
    "too few": (lambda *_: [["47", "46"], ["47"]], "for prefix 1 of the batch, returned 1 comp"),
    "too many": (lambda *_: [["1"] * 3] * 2, "for prefix 0 of the batch, returned 3 comp"),
    "no text": (
        lambda *_: [["47", None]] * 2,
        "returned a NoneType as completion 1, must be a str",
    ),
    "bytes": (lambda *_: [["47", b"47"]] * 2, "returned a bytes as completion 1"),
    "lazy": (lambda *_: iter([]), "Hint: return list"),
}


@pytest.mark.parametrize(("returned", "message"), WRONG.values(), ids=WRONG)
def test_what_a_completer_returns_is_checked(returned: Returned, message: str) -> None:
    frame = solutions(SHARED)

    def completer(prefixes: list[str], n: int) -> list[list[str]]:
        if "no idea" in prefixes[-1]:
            return returned(prefixes, n)  # type: ignore[return-value]
        return Recorder()(prefixes, n)

    with pytest.raises(CompletionError, match="batch 3 of 3.*'q'.*" + re.escape(message)) as error:
        tts.process.annotate(frame, completer, 2, batch_size=2)
    assert "8 of 12 rollouts are done" in error.value.__notes__[0]


def test_what_a_completer_raises_passes() -> None:
    def completer(prefixes: list[str], n: int) -> list[list[str]]:
        raise KeyError(len(prefixes), n)

    with pytest.raises(KeyError) as error:
        tts.process.annotate(solutions(SHARED), completer, 2)
    assert "cache=" in error.value.__notes__[0]


PARAMETERS: list[tuple[dict[str, object], type[Exception], str]] = [
    ({"n_rollouts": 0}, ParameterError, "n_rollouts == 0"),
    ({"n_rollouts": 2.0}, ParameterTypeError, "n_rollouts must be an int, got float"),
    ({"batch_size": 0}, ParameterError, "batch_size == 0"),
    ({"completer": "gpt"}, ParameterTypeError, "must be callable"),
    ({"template": "{steps}"}, ParameterError, "must contain '{problem}' once"),
    ({"template": "{steps} {problem}"}, ParameterError, "must contain '{problem}' once"),
    ({"template": "{problem} {problem} {steps}"}, ParameterError, "must contain '{problem}' once"),
    ({"template": "{problem} {steps} and?"}, ParameterError, "separate a solution from its"),
    ({"template": None}, ParameterTypeError, "template is a NoneType"),
    ({"separator": 3}, ParameterTypeError, "separator is a int"),
    ({"final_step": "guess"}, ParameterError, "final_step == 'guess'"),
    ({"style": "guess"}, ParameterError, "style == 'guess'"),
    ({"cache": "somewhere"}, ParameterError, "without a key"),
    ({"cache": "somewhere", "key": 7}, ParameterTypeError, "key is a int"),
]


@pytest.mark.parametrize(("options", "kind", "message"), PARAMETERS)
def test_parameters_are_checked_before_anything_is_sampled(
    options: dict[str, object], kind: type[Exception], message: str
) -> None:
    completer = Recorder()
    with pytest.raises(kind, match=re.escape(message)):
        tts.process.annotate(
            solutions(SHARED), **{"completer": completer, "n_rollouts": 1} | options
        )  # type: ignore[arg-type]
    assert not completer.calls


A_STEP = pl.col("step") == 1

BROKEN: list[tuple[Callable[[pl.DataFrame], pl.DataFrame], str]] = [
    (lambda frame: frame.filter(~A_STEP), "not numbered 0, 1, 2, ... once each: [0, 2]"),
    (lambda frame: pl.concat([frame, frame]), "not numbered 0, 1, 2, ... once each: [0, 0, 1, 1"),
    (lambda frame: frame.with_columns(pl.col("step") + 1), "once each: [1, 2, 3]"),
    (lambda frame: frame.with_columns(step=pl.lit(-1)), "not numbered"),
    (lambda frame: frame.with_columns(pl.col("step") - 2), "are not steps"),
    (lambda frame: frame.with_columns(text=pl.when(~A_STEP).then("text")), "are not steps"),
    (lambda frame: frame.with_columns(step=pl.when(~A_STEP).then("step")), "are not steps"),
    (lambda frame: frame.with_columns(solution_id=pl.lit(None, pl.String)), "are not steps"),
    (lambda frame: frame.with_columns(problem=pl.when(~A_STEP).then("problem")), "are not steps"),
    (
        lambda frame: frame.with_columns(problem=pl.format("{} {}", "problem", "step")),
        "4 solutions (the first is {'problem_id': 'p', 'solution_id': 'a'}) have more than one 'problem'",
    ),
    (lambda frame: frame.with_columns(gold=pl.col("step").cast(pl.String)), "than one 'gold'"),
]


@pytest.mark.parametrize(("spoil", "message"), BROKEN)
def test_solutions_that_are_not_whole_are_an_error(
    spoil: Callable[[pl.DataFrame], pl.DataFrame], message: str
) -> None:
    completer = Recorder()
    with pytest.raises(DataError, match=re.escape(message)):
        tts.process.annotate(spoil(solutions(SHARED)), completer, 1)
    assert not completer.calls


def test_columns_are_checked() -> None:
    frame = solutions(SHARED)
    with pytest.raises(ColumnsError, match=r"missing columns? for solutions: 'text', 'gold'"):
        tts.process.annotate(frame.drop("text", "gold"), Recorder(), 1)
    with pytest.raises(ColumnsError, match="'step' of solutions is String"):
        tts.process.annotate(frame.cast({"step": pl.String}), Recorder(), 1)
    with pytest.raises(ColumnsError, match="'gold' of solutions is Int64"):
        tts.process.annotate(frame.cast({"gold": pl.Int64}), Recorder(), 1)


def test_steps_that_branch_are_pointed_to_their_solutions() -> None:
    twice = pl.concat([solutions(SHARED), solutions(SHARED)])
    for column, hint in {
        "node": "tts.process.step_paths",
        "is_on_path": ".filter('is_on_path')",
    }.items():
        with pytest.raises(DataError, match=re.escape(hint)):
            tts.process.annotate(twice.with_columns(pl.lit(0).alias(column)), Recorder(), 1)


def test_real_trees_have_each_of_their_prefixes_completed_once(shared_data: Path) -> None:
    source = shared_data / "openr" / "samples_math-aps-tree.jsonl"
    expected = set()
    for line in source.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        ahead = [(record["question"], node) for node in record["reasoning_steps"]["children"]]
        while ahead:
            before, node = ahead.pop()
            expected.add(f"{before}\x00{node['text']}")
            ahead += [(f"{before}\x00{node['text']}", child) for child in node["children"]]
    completer = Recorder()
    steps = tts.read_steps(source).pipe(tts.process.step_paths)
    options = {"template": "{problem}\x00{steps}", "separator": "\x00"}
    rollouts = tts.process.annotate(steps, completer, 2, final_step="sample", **options)  # type: ignore[arg-type]
    assert len(completer.prefixes) == len(expected)
    assert {prefix.removesuffix("\x00") for prefix in completer.prefixes} == expected
    n_steps = steps.filter(pl.col("step") >= 0).height
    assert n_steps > len(expected)
    assert rollouts.height == 2 * n_steps
    assert rollouts["is_correct"].null_count() == 0
