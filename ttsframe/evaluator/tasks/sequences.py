"""Arithmetic sequences of higher order, whose next term is asked for."""

from __future__ import annotations

import re
from collections import deque
from functools import lru_cache
from typing import ClassVar, Final

import polars as pl

from ttsframe._checks import check_between, check_positive
from ttsframe.answers import AnswerPolicy, extract_answer
from ttsframe.answers.normalize import normalize_text
from ttsframe.answers.values.rational import read_rational
from ttsframe.errors import DataError
from ttsframe.evaluator.tasks.task import Findings, SeededTask, TaskInstance

__all__ = ["ArithmeticSequence"]

_MOST_DIGITS: Final = 40
"""Enough for every possible term."""

_FARTHEST: Final = 100
_LONGEST_KEPT: Final = 10_000
_LONGEST_FOUND: Final = 200
_LONGEST_QUOTE: Final = 60
_POLICY: Final = AnswerPolicy(percent="kept", decimal_comma="refused")
_EXTRACT: Final = extract_answer(pl.col("response"))
_INTEGER: Final = re.compile(rf"-?(?:0|[1-9][0-9]{{0,{_MOST_DIGITS - 1}}})")
_TAIL: Final = 400
_LAST_LINE: Final = re.compile(
    r"final\s{1,4}answer[*_`]{0,4}\s{0,4}:\s{0,4}([^\n]{1,200})\Z", re.IGNORECASE | re.ASCII
)
_AROUND: Final = " \t\r*_`."
_REACH: Final = 60
_GROUPED: Final = re.compile(
    r"(?<![0-9])[0-9]{1,3}(?:[ .,'\u00a0\u2009\u202f][0-9]{3})+(?![0-9])", re.ASCII
)
_CONTINUES: Final = re.compile(
    r"\.?[eE][-+]?[0-9]+|\s?(?:[\^×/]|\*\*?|\\times|\\cdot)\s?\{?[0-9]+|\s?\\[dt]?frac",
    re.ASCII,
)
_REMARK: Final = re.compile(r"\s{1,4}\([^()]{1,200}\)$")
_BEGINS_AS_NUMBER: Final = re.compile(r"[-+\u2212(\s]{0,4}[0-9]")


class ArithmeticSequence(SeededTask):
    r"""Continue an arithmetic sequence of order `complexity`.

    Taking the differences of such a sequence repeatedly, as often as its order, gives a constant
    sequence; order 1 is the ordinary arithmetic sequence. The answer is one short integer, but the
    number of additions grows with the square of the order.

    Parameters
    ----------
    n_ahead
        Which term to find, 1 to 100: 1 is the term after the last one shown.
    seed
        Seed of the instances, 0 to 2^64 - 1.

    See Also
    --------
    TowerOfHanoi : Answers that are long.
    LogicalDeduction : Answers that are an order.

    Notes
    -----
    Complexity is the order :math:`c`, 1 to 30. The prompt states it and shows :math:`c + 3` terms, two
    more than determine the sequence, so exactly one answer exists:

    .. math:: a_n = \sum_{j=0}^{c} d_j \binom{n}{j}, \qquad n = 0, 1, ...

    with :math:`d_0` from -20 to 20, :math:`d_1, ..., d_c` from -9 to 9, and :math:`d_c \neq 0`. The
    table of differences takes :math:`c (c + 5)/2` subtractions, and each further term :math:`c`
    additions.

    Text before ``</think>`` is ignored. If the last line is "Final answer:" and a number, which a
    remark in brackets may follow, that is the answer; otherwise `extract_answer` finds it. The answer
    must be a single integer of at most 40 digits: thousands may be separated, and ``a_9 = 31`` is 31,
    but an unevaluated sum or a list of terms is not an answer.

    References
    ----------
    R. L. Graham, D. E. Knuth, O. Patashnik. Concrete Mathematics. 2nd edition, 1994, section 5.3,
    equation 5.45 (Newton series).

    Examples
    --------
    >>> from ttsframe.evaluator import ArithmeticSequence
    >>> task = ArithmeticSequence(seed=1)
    >>> instance = task.generate_instance(2)
    >>> instance.metadata["terms"], instance.ground_truth
    ([14, 15, 9, -4, -24], '-51')
    >>> task.verify_solution(instance, "Final answer: -44").error_message
    'the answer is -44, must be -51.'
    >>> task.parse("so the next term is **1,204**.")
    '1204'
    """

    name = "arithmetic_sequence"
    complexities: ClassVar[tuple[int, int]] = (1, 30)

    def __init__(self, *, n_ahead: int = 1, seed: int = 0) -> None:
        super().__init__(seed=seed)
        self.n_ahead = check_positive(n_ahead, "n_ahead")
        check_between(n_ahead, "n_ahead", 1, _FARTHEST)

    def _make(self, complexity: int, index: int) -> TaskInstance:
        """Draw the leading differences, and sum them up."""
        stream = self._stream(complexity, index)
        differences = [stream.between(-20, 20)]
        differences += [stream.between(-9, 9) for _ in range(complexity - 1)]
        differences.append(stream.between(1, 9) * (1 - 2 * stream.below(2)))
        n_shown = complexity + 3
        terms = _terms(differences, n_shown + self.n_ahead)
        shown = terms[:n_shown]
        which = (
            "next term" if self.n_ahead == 1 else f"term {self.n_ahead} places after the last one"
        )
        constant = (
            "The difference between neighbouring terms is constant"
            if complexity == 1
            else f"Taking the differences of neighbouring terms {complexity} times over gives a constant sequence"
        )
        prompt = (
            f"A sequence of integers begins {', '.join(map(str, shown))}. {constant}. What is the {which}? "
            'End with a line of the form "Final answer: <integer>".'
        )
        return TaskInstance(prompt, complexity, str(terms[-1]), {"terms": shown})

    def parse(self, response: str) -> str | None:
        """Read the digits of the integer, with a minus sign if it is negative; None without one."""
        answer = _announced(response)
        return None if answer is None else _integer(answer)

    def _verify(self, instance: TaskInstance, response: str) -> Findings:
        """Compare the integer with the term."""
        truth = _truth(instance)
        answer = _announced(response)
        value = None if answer is None else _integer(answer)
        if answer is None:
            return "no answer found.", {}
        if value is None:
            quoted = answer if len(answer) <= _LONGEST_QUOTE else f"{answer[:_LONGEST_QUOTE]}..."
            error = (
                f"the answer {quoted!r} is not a single integer of at most {_MOST_DIGITS} digits."
            )
            return error, {}
        return (None if value == truth else f"the answer is {value}, must be {truth}."), {}

    def wrong_answer(self, instance: TaskInstance, number: int) -> str:
        """Return an integer near the right one: 1 above it, 1 below, 2 above, and so on."""
        distance = number // 2 + 1
        return str(int(_truth(instance)) + (distance if number % 2 == 0 else -distance))


def _truth(instance: TaskInstance) -> str:
    """Return the right answer."""
    truth = instance.ground_truth
    if truth is None or not _INTEGER.fullmatch(truth):
        raise DataError(
            f"ground_truth of the instance is {truth!r}, must be an integer of at most "
            f"{_MOST_DIGITS} digits. Hint: is it an instance of ArithmeticSequence?"
        )
    return truth


def _terms(differences: list[int], count: int) -> list[int]:
    """Return the first terms of the sequence with these leading differences."""
    row = list(differences)
    terms = []
    for _ in range(count):
        terms.append(row[0])
        row = [term + above for term, above in zip(row, [*row[1:], 0], strict=True)]
    return terms


def _announced(response: str) -> str | None:
    """Return the answer: the last line in the requested form, or else what `extract_answer` finds."""
    thinking, _, reply = response.rpartition("</think>")
    text = reply if reply.strip() else thinking
    asked = _LAST_LINE.search(text[-_TAIL:].rstrip())
    if asked:
        answer = _REMARK.sub("", asked[1].strip(_AROUND))
        # A number is read completely or not at all: neither "4²" nor "4 + 2" is 4.
        if _integer(answer) is not None or _BEGINS_AS_NUMBER.match(answer):
            return answer
    return (_searched_once if len(text) <= _LONGEST_KEPT else _searched)(text)


def _searched(response: str) -> str | None:
    """Return the answer that the column expression finds."""
    # A lone surrogate cannot be a Polars string, nor part of a number.
    text = response.encode("utf-8", "replace").decode("utf-8")
    found = pl.DataFrame({"response": [text]}).select(_EXTRACT).item()
    if not isinstance(found, str):
        return None
    return _complete(found, text)


def _complete(found: str, text: str) -> str:
    """Return the complete number of which a part was found, as in "1 234", "3.e5" and "4½"."""
    if len(found) > _LONGEST_FOUND:
        return found
    last = deque(re.finditer(rf"(?<![0-9]){re.escape(found)}(?![0-9])", text), maxlen=1)
    if not last:
        return found
    start, end = last[0].span()
    for grouped in _GROUPED.finditer(text, max(0, start - _REACH), end + _REACH):
        if grouped.start() < end and start < grouped.end():
            start, end = min(start, grouped.start()), max(end, grouped.end())
    before, after = text[max(0, start - 1) : start], text[end : end + 1]
    if text[start:end][-1:].isdecimal():
        more = _CONTINUES.match(text, end)
        after = more[0] if more else after if after.isnumeric() else ""
    else:
        after = ""
    return (before if before.isnumeric() else "") + text[start:end] + after


# A query takes milliseconds, and each response is read twice, for its vote and its verdict.
_searched_once = lru_cache(maxsize=1_000)(_searched)


def _integer(answer: str) -> str | None:
    """Read an answer, or the right side of an equation, as a single integer."""
    value = read_rational(normalize_text(answer).rpartition("=")[2].strip(), _POLICY)
    if value is None or value[1] or value[0].denominator != 1:
        return None
    number = value[0].numerator
    return str(number) if abs(number) < 10**_MOST_DIGITS else None
