"""Keys and grades of one string, for exploring; columns have expressions."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ttsframe.answers.grade import Grading
from ttsframe.answers.lookup.table import KeyMethod, key_table
from ttsframe.answers.policy import AnswerPolicy
from ttsframe.errors import ParameterTypeError

__all__ = ["grade_one", "key_of"]


def key_of(
    answer: str | None, *, policy: AnswerPolicy | None = None, method: KeyMethod = "auto"
) -> str | None:
    r"""Return the canonical key of one answer, as `answer_key` does for a column.

    Parameters
    ----------
    answer
        The answer; a string is the answer itself.
    policy, method
        As in `answer_key`.

    Returns
    -------
    str | None
        The key; None for None, and for a text that holds no answer.

    Raises
    ------
    ParameterError
        When `method` is unknown, or `"sympy"` is given a policy.
    ParameterTypeError
        When `answer` is not a string, or `policy` is not an AnswerPolicy.
    MissingExtraError
        When a library that the answer or the method needs cannot be imported.

    See Also
    --------
    answer_key : The same for a column.
    explain_answer : How the key came about.

    Examples
    --------
    >>> import ttsframe as tts
    >>> tts.answers.key_of("1/2")
    '3:1/2'
    >>> tts.answers.key_of(r"\frac{2}{4}") == tts.answers.key_of("0.5")
    True
    """
    table = key_table(policy, method)
    text = _checked(answer, "answer")
    return None if text is None else table.look_up([text])[text].key


def grade_one(
    answer: str | None,
    gold: str | None,
    *,
    policy: AnswerPolicy | None = None,
    method: KeyMethod = "auto",
    rel_tol: float | None = None,
    abs_tol: float | None = None,
    options: Sequence[str] | None = None,
) -> bool | None:
    r"""Tell whether one answer is equivalent to its gold answer, as `is_equivalent` does for columns.

    Parameters
    ----------
    answer
        The answer.
    gold
        The gold answer; a box, `#### N` or a complete reference solution is read as in `gold_key`.
    policy, method, rel_tol, abs_tol
        As in `is_equivalent`.
    options
        The texts of options A, B, C, ... of a multiple-choice problem.

    Returns
    -------
    bool | None
        None where there is no gold answer; False where there is one and no answer.

    Raises
    ------
    ParameterError
        When a tolerance is negative or not finite, `method` is unknown, or `"sympy"` is given a policy.
    ParameterTypeError
        When `answer` or `gold` is not a string, or `policy` is not an AnswerPolicy.
    MissingExtraError
        When a library that the answer or the method needs cannot be imported.

    See Also
    --------
    is_equivalent : The same for columns.

    Examples
    --------
    >>> import ttsframe as tts
    >>> tts.answers.grade_one("0.5", r"\frac{1}{2}")
    True
    >>> tts.answers.grade_one("3.14", r"\pi"), tts.answers.grade_one("3.14", r"\pi", rel_tol=1e-3)
    (False, True)
    """
    grading = Grading(policy, method, rel_tol, abs_tol)
    row: dict[str, pl.Series] = {
        "answer": pl.Series([_checked(answer, "answer")], dtype=pl.String),
        "gold": pl.Series([_checked(gold, "gold")], dtype=pl.String),
    }
    if options is not None:
        row["options"] = pl.Series([list(options)], dtype=pl.List(pl.String))
    grade: bool | None = grading(pl.DataFrame(row).to_struct("row"))[0]
    return grade


def _checked(text: str | None, parameter: str) -> str | None:
    """Return a text, or raise where it is none."""
    if text is None or isinstance(text, str):
        return text
    raise ParameterTypeError(
        f"{parameter} is a {type(text).__name__}, must be a string or None. Hint: tts.answer_key and "
        "tts.is_equivalent take columns."
    )
