"""Every pick of a run beside search-and-learn's, and the rule behind each that differs.

A vote there becomes a vote here in two steps: attempts without an answer abstain, and answers are
read and grouped by key. The step after which both picks agree, and keep agreeing, is the cause; its
evidence is looked for in the texts and in what the published parser makes of them. A difference
without evidence is unexplained.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from sal_replay import extract, picks, strip

import ttsframe as tts
from ttsframe.answers.lookup.worker import run_tasks

SELECTORS = {"naive": "best_of_n", "weighted": "weighted_vote", "maj": "majority_vote"}
UNEXPLAINED = "unexplained"
_PLACEHOLDERS = {"answer", "finalanswer"}


class Attempt(NamedTuple):
    """An attempt as both tools read it."""

    text: str
    theirs: str
    """Their answer; "" where there is none."""
    answer: str | None
    key: str | None
    score: float
    """Last step; NaN where there is none."""


class Comparison(NamedTuple):
    """One pick of one problem."""

    problem_id: str
    method: str
    budget: int
    recorded: str
    """Their pick, without its box."""
    replayed: str
    """The same, from `sal_replay`."""
    is_boxed: bool
    """Whether each attempt within the budget ends in one closed box."""
    rule: str | None
    """Why the picks differ; None where they agree."""
    is_replayed_here: bool
    """Whether the replay with our answers and keys picks what ttsframe picks."""


class Forms:
    """The published canonical forms, each asked for once."""

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        self.forms = dict(known or {})
        self.is_read: dict[str, bool] = {}

    def ask(self, answers: Iterable[str]) -> None:
        wanted = sorted({answer for answer in answers if answer not in self.forms})
        # An integer is its own form, and the parser is slow.
        plain = [answer for answer in wanted if re.fullmatch(r"0|-?[1-9]\d*", answer)]
        self.forms.update(zip(plain, plain, strict=True))
        for answer, outcome in run_tasks("published", sorted({*wanted} - {*plain})).items():
            assert outcome.status == "done"
            self.is_read[answer] = outcome.value is not None
            self.forms[answer] = strip(answer) if outcome.value is None else outcome.value

    def __getitem__(self, answer: str) -> str:
        self.ask([answer])
        return self.forms[answer]

    def reads(self, answer: str) -> bool:
        """Tell whether the parser reads the answer as mathematics."""
        if answer not in self.is_read:
            outcome = run_tasks("published", [answer])[answer]
            assert outcome.status == "done"
            self.is_read[answer] = outcome.value is not None
        return self.is_read[answer]


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a JSONL run as the file has them."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def recorded_picks(row: Mapping[str, Any]) -> dict[tuple[str, int], str]:
    """Return the picks in a row of a run, by method and budget."""
    found = {}
    for name, value in row.items():
        if match := re.fullmatch(r"pred_(naive|weighted|maj)@(\d+)", name):
            found[match[1], int(match[2])] = value.removeprefix("\\boxed{").removesuffix("}")
    return found


def compare(
    trajectories: pl.DataFrame,
    recorded: Mapping[Any, Mapping[tuple[str, int], str]],
    forms: Forms,
) -> list[Comparison]:
    """Compare picks over scored attempts, `recorded` by problem."""
    budgets = sorted({budget for of_problem in recorded.values() for _, budget in of_problem})
    problems = tts.select_answers(trajectories, selectors=[*SELECTORS.values()], budgets=budgets)
    ours = {
        (row["problem_id"], row["selector"], row["budget"]): row
        for row in problems.iter_rows(named=True)
    }
    attempts: dict[Any, list[Attempt]] = {}
    for row in trajectories.sort("attempt").iter_rows(named=True):
        text = row["completion"]
        score = math.nan if row["score"] is None else row["score"]
        attempts.setdefault(row["problem_id"], []).append(
            Attempt(text, extract(text), row["answer"], row["answer_key"], score)
        )
    every = [attempt for group in attempts.values() for attempt in group]
    forms.ask(attempt.theirs for attempt in every)
    return [
        _compare_pick(problem_id, attempts[problem_id], method, budget, pick, ours, forms)
        for problem_id, of_problem in recorded.items()
        for (method, budget), pick in of_problem.items()
    ]


def _compare_pick(
    problem_id: Any,
    attempts: Sequence[Attempt],
    method: str,
    budget: int,
    recorded: str,
    ours: Mapping[tuple[Any, str, int], Mapping[str, Any]],
    forms: Forms,
) -> Comparison:
    own = ours[problem_id, SELECTORS[method], budget]
    within = attempts[:budget]
    scores = [attempt.score for attempt in attempts]
    steps = [
        [forms[attempt.theirs] for attempt in attempts],
        [None if a.key is None else forms[a.theirs] for a in attempts],
        [attempt.key for attempt in attempts],
    ]
    chosen = [picks(groups, scores, budget)[method] for groups in steps]
    keys = [None if index is None else attempts[index].key for index in chosen]
    agrees = [key == own["answer_key"] for key in keys]
    assert chosen[0] is not None
    pick = attempts[chosen[0]]
    # What is an answer there and none here is a difference, although nothing is chosen here either.
    agrees[0] &= pick.key is not None or not pick.theirs

    status = _status(within, method, budget)
    if status != "ok":
        rule = status if own["status"] == status else UNEXPLAINED
    elif agrees[0]:
        rule = None
    else:
        winners = {forms[pick.theirs], own["answer_key"]}
        is_of_grouping = not agrees[1]
        rule = _of_grouping(within, winners, forms) if is_of_grouping else _of_abstention(within)
    return Comparison(
        problem_id,
        method,
        budget,
        recorded,
        pick.theirs,
        all(attempt.text.count("boxed") == 1 and has_box(attempt.text) for attempt in within),
        rule,
        is_replayed_here=status != "ok" or agrees[2],
    )


def _status(within: Sequence[Attempt], method: str, budget: int) -> str:
    """Return what ttsframe must say of a vote that search-and-learn holds all the same."""
    scores = [attempt.score for attempt in within if not math.isnan(attempt.score)]
    if len(within) < budget:
        return "short"
    if method != "maj" and not scores:
        return "unscored"
    if method == "weighted" and min(scores) < 0:
        return "undefined"
    return "ok"


def has_box(text: str) -> bool:
    """Tell whether the last box of a text closes and holds something."""
    depth = 0
    _, _, rest = text.rpartition("\\boxed")
    for position, character in enumerate(rest.lstrip()):
        depth += (character == "{") - (character == "}")
        if depth == 0:
            return bool(rest.lstrip()[1:position].strip())
    return False


def _letters_in_last_box(text: str) -> str:
    """Return the letters in the last box, without commands and case."""
    content = re.findall(r"\\boxed\s*\{((?:[^{}]|\{[^{}]*\})*)\}", text)[-1:]
    return re.sub(r"\\[a-zA-Z]+|[^A-Za-z]", "", "".join(content)).lower()


def _of_abstention(within: Sequence[Attempt]) -> str:
    """An attempt without a box voted there with its last number or what is left of one, or with a placeholder."""
    silent = [attempt for attempt in within if attempt.key is None]
    boxed = {_letters_in_last_box(attempt.text) for attempt in silent if has_box(attempt.text)}
    if boxed:
        return "a placeholder voted there" if boxed <= _PLACEHOLDERS else UNEXPLAINED
    return "no answer voted there" if silent else UNEXPLAINED


def _of_grouping(within: Sequence[Attempt], winners: Container[str | None], forms: Forms) -> str:
    """Answers were split or merged there: each pair that touches a winner must show why."""
    voters = list({(a.theirs, a.key): a for a in within if a.key is not None}.values())
    reasons = {
        reason_of_pair(one, other, forms)
        for one, other in itertools.combinations(voters, 2)
        if (forms[one.theirs] == forms[other.theirs]) != (one.key == other.key)
        and any(group in winners for a in (one, other) for group in (a.key, forms[a.theirs]))
    }
    return UNEXPLAINED if UNEXPLAINED in reasons or not reasons else " + ".join(sorted(reasons))


def reason_of_pair(one: Attempt, other: Attempt, forms: Forms) -> str:
    """Say why search-and-learn merges two different answers, or splits one."""
    unlike = [a for a in (one, other) if strip(a.answer or "") != a.theirs]
    if unlike:
        return _of_reading(unlike)
    return UNEXPLAINED if one.key != other.key else _of_split(one, other, forms)


def _of_reading(unlike: Sequence[Attempt]) -> str:
    """Another text was taken for the answer there."""
    if all("boxed" not in attempt.text for attempt in unlike):
        return "an answer without a box read in part"
    if all(attempt.theirs.startswith(r"\boxed{") for attempt in unlike):
        return "split: a box kept around one"
    return UNEXPLAINED


def _of_split(one: Attempt, other: Attempt, forms: Forms) -> str:
    """Two answers have two forms there, and one key here."""
    if not forms.reads(one.theirs) or not forms.reads(other.theirs):
        return "split: the parser rejects one"
    if _word(one) is not None and _word(one) == _word(other):
        return "split: letters taken for factors"
    is_zero = forms[f"({one.theirs})-({other.theirs})"] == "0"
    return "split: two forms of one value" if is_zero else UNEXPLAINED


def _word(attempt: Attempt) -> str | None:
    """Return an answer that is one word, without its markup and case."""
    word = re.fullmatch(r"(?:\\text(?:bf)?\{)?\s*([a-zA-Z]{2,})\s*\}?", attempt.answer or "")
    return word[1].lower() if word else None
