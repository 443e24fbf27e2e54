"""Keys of answers as expressions: equal keys mean equivalent answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, get_args

import polars as pl

from ttsframe._exprs import into_expr, map_column
from ttsframe._typing import IntoExprColumn
from ttsframe.answers.columns import as_answers, map_distinct, per_distinct
from ttsframe.answers.engine import AnswerKind
from ttsframe.answers.extract import extract_answer
from ttsframe.answers.lookup.table import Entry, KeyMethod, KeyTable, key_table
from ttsframe.answers.normalize import normalize_text
from ttsframe.answers.policy import AnswerPolicy

__all__ = [
    "answer_key",
    "answer_kind",
    "gold_answers",
    "gold_key",
    "keys_of",
    "normalize_answer",
]

_KINDS: Final = pl.Enum(get_args(AnswerKind))


def normalize_answer(answer: IntoExprColumn) -> pl.Expr:
    r"""Give each answer a common spelling without changing its meaning.

    Removes delimiters, spacing commands, unusual Unicode and needless braces. The result is a readable
    string, from which `answer_key` starts.

    Parameters
    ----------
    answer
        String column, answers as extracted.

    Returns
    -------
    pl.Expr
        String, named as the input; null for null and where the result is empty.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"answer": [r"$x = 5$", r"\left( 3,\, 4 \right)", "$$"]})
    >>> frame.select(tts.normalize_answer("answer"))["answer"].to_list()
    ['x = 5', '( 3, 4 )', None]
    """
    return map_column(into_expr(answer, "answer"), _normalize_column, pl.String())


def answer_key(
    answer: IntoExprColumn,
    *,
    policy: AnswerPolicy | None = None,
    method: KeyMethod = "auto",
) -> pl.Expr:
    r"""Return the canonical key of each answer: equal keys mean equivalent answers.

    A vote groups by this key. A key is a pure function of its answer under one policy: it does not
    depend on other answers, on order, on threads, on what is installed or on the load of the machine.
    Each distinct answer is read once per process.

    Parameters
    ----------
    answer
        String column, answers as extracted.
    policy
        Conventions under which answers are the same; by default those of `AnswerPolicy`.
    method
        `"auto"`: exact arithmetic and certified evaluation; sympy, in worker processes, evaluates infinite
        sums, integrals, limits and derivatives. `"sympy"`: the form that search-and-learn published, latex
        of simplify of latex2sympy, including its faults, for parity with its results. It has no policy and
        needs the extra `ttsframe[latex2sympy]`.

    Returns
    -------
    pl.Expr
        String, named as the input. A key begins with a short form of policy and code version, such as
        `3:`. Null for null, and for a text that holds no answer.

    Raises
    ------
    ParameterError
        At once, when `method` is unknown, or `"sympy"` is given a policy.
    ParameterTypeError
        At once, when `policy` is not an AnswerPolicy.
    MissingExtraError
        At once, when `"sympy"` is given and latex2sympy2 is not installed; on collection, when a library
        that an answer needs cannot be imported.

    See Also
    --------
    answers.key_of : The key of one string; here a string names a column.

    Notes
    -----
    Where sympy reaches its limit of time or memory, the key is that of the text, `answer_kind` is `text`,
    and `answer_statistics` counts it.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"answer": ["0.5", r"\frac{2}{4}", r"50\%", "5 cm", "", None]})
    >>> frame.select(tts.answer_key("answer"))["answer"].to_list()
    ['3:1/2', '3:1/2', '3:50', '3:5', None, None]
    """
    key_table(policy, method)
    return map_column(into_expr(answer, "answer"), _AnswerKeys(policy, method), pl.String())


def gold_key(
    gold: IntoExprColumn,
    *,
    policy: AnswerPolicy | None = None,
    method: KeyMethod = "auto",
) -> pl.Expr:
    r"""Return the canonical key of each gold answer.

    Like `answer_key`, for a column that may hold more than the answer: a box, `#### N`, or a complete
    reference solution, from which the answer is extracted first.

    Parameters
    ----------
    gold
        String column, gold answers or solutions; or Date or Datetime.
    policy, method
        As in `answer_key`. Only keys with the same policy and method can be compared.

    Returns
    -------
    pl.Expr
        String, named as the input; null for null and where there is no answer.

    Raises
    ------
    ParameterError
        At once, when `method` is unknown, or `"sympy"` is given a policy.
    ParameterTypeError
        At once, when `policy` is not an AnswerPolicy.
    MissingExtraError
        At once, when `"sympy"` is given and latex2sympy2 is not installed; on collection, when a library
        that an answer needs cannot be imported.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"gold": [r"Hence $x=\boxed{\frac12}$.", "so 3\n#### 3", "0.50"]})
    >>> frame.select(tts.gold_key("gold"))["gold"].to_list()
    ['3:1/2', '3:3', '3:1/2']
    """
    key_table(policy, method)
    return map_column(into_expr(gold, "gold"), _GoldKeys(policy, method), pl.String())


def answer_kind(
    answer: IntoExprColumn,
    *,
    policy: AnswerPolicy | None = None,
    method: KeyMethod = "auto",
) -> pl.Expr:
    r"""Return the kind of each answer, which shows how many answers are compared as text.

    Parameters
    ----------
    answer
        String column, answers as extracted.
    policy, method
        As in `answer_key`.

    Returns
    -------
    pl.Expr
        Enum, named as the input: `exact` (a rational number), `numeric` (a number whose digits
        are certified), `symbolic` (with letters), `structure` (lists, intervals, matrices,
        relations), `text` (compared as words) or `missing` (null, or no answer).

    Raises
    ------
    ParameterError
        At once, when `method` is unknown, or `"sympy"` is given a policy.
    ParameterTypeError
        At once, when `policy` is not an AnswerPolicy.
    MissingExtraError
        At once, when `"sympy"` is given and latex2sympy2 is not installed; on collection, when a library
        that an answer needs cannot be imported.

    See Also
    --------
    explain_answer : How one string is read; here a string names a column.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"answer": ["1,234", r"\sqrt{2}", "x+1", "[0, 1)", "Evelyn", None]})
    >>> frame.select(tts.answers.answer_kind("answer"))["answer"].to_list()
    ['exact', 'numeric', 'symbolic', 'structure', 'text', 'missing']
    """
    key_table(policy, method)
    return map_column(into_expr(answer, "answer"), _Kinds(policy, method), _KINDS)


# The functions of these expressions are values that pickle: each finds the table of the process that runs
# it, so that a query can be serialized, sent to a worker, and compared.


@dataclass(frozen=True)
class _AnswerKeys:
    policy: AnswerPolicy | None
    method: KeyMethod

    def __call__(self, values: pl.Series) -> pl.Series:
        return keys_of(as_answers(values, "answer"), key_table(self.policy, self.method))


@dataclass(frozen=True)
class _GoldKeys:
    policy: AnswerPolicy | None
    method: KeyMethod

    def __call__(self, values: pl.Series) -> pl.Series:
        return keys_of(gold_answers(values), key_table(self.policy, self.method))


@dataclass(frozen=True)
class _Kinds:
    policy: AnswerPolicy | None
    method: KeyMethod

    def __call__(self, values: pl.Series) -> pl.Series:
        table = key_table(self.policy, self.method)
        kinds = _look_up_column(as_answers(values, "answer"), table, lambda entry: entry.kind)
        return kinds.fill_null("missing").cast(_KINDS)


def _normalize_column(values: pl.Series) -> pl.Series:
    return per_distinct(as_answers(values, "answer"), _normal_or_none)


def _normal_or_none(text: str) -> str | None:
    return normalize_text(text) or None


def keys_of(answers: pl.Series, table: KeyTable) -> pl.Series:
    """Return the keys of a column of answers."""
    return _look_up_column(answers, table, lambda entry: entry.key)


def _look_up_column(
    values: pl.Series, table: KeyTable, field: Callable[[Entry], str | None]
) -> pl.Series:
    """Look up the distinct strings of a column and map a field of their entries back."""

    def fields(answers: list[str]) -> list[str | None]:
        entries = table.look_up(answers)
        return [field(entries[answer]) for answer in answers]

    return map_distinct(values, fields)


_SHORT_GOLD: Final = 200


def gold_answers(values: pl.Series) -> pl.Series:
    """Return gold answers, extracted where the column holds more than the answer."""
    gold = as_answers(values, "gold")
    distinct = gold.drop_nulls().unique()
    frame = distinct.to_frame("gold")
    text = pl.col("gold")
    holds_more = (
        text.str.contains_any(["\\boxed", "\\fbox", "####", "\n"])
        | (text.str.len_chars() > _SHORT_GOLD)
    )  # fmt: skip
    if frame.filter(holds_more).is_empty():
        return gold
    extracted = extract_answer(pl.when(holds_more).then(text).alias("gold"))
    answers = frame.select(pl.coalesce(extracted, text))["gold"]
    return gold.replace_strict(distinct, answers, default=None, return_dtype=pl.String)
