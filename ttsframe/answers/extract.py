"""Final answers in completions.

Polars string functions search the long texts. The few hundred characters that they leave, in which an
answer is stated, are read once per distinct text by `statements`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Final, NamedTuple, TypeAlias, get_args

import numpy as np
import polars as pl

from ttsframe._checks import check_choice
from ttsframe._exprs import into_expr, map_column
from ttsframe._typing import AnswerStyle, ExtractionRule, Flags, Integers, IntoExprColumn
from ttsframe.answers import marks as _marks
from ttsframe.answers import statements as _statements
from ttsframe.answers.boxes import HAS_BOX, boxed_answers, has_box, last_box, last_boxes
from ttsframe.answers.columns import (
    as_strings,
    computed,
    keep_where,
    nothing_for,
    only_where,
    per_distinct,
    prefer,
    scattered,
)
from ttsframe.answers.spans import NUMBER
from ttsframe.errors import ParameterTypeError

__all__ = ["ExtractionExplanation", "explain_extraction", "extract_answer", "extraction_rule"]

RULES: Final[tuple[ExtractionRule, ...]] = get_args(ExtractionRule)
_RULE: Final = pl.Enum(RULES)
_LAST_NUMBER: Final = rf"(?:^|[^\w.)\]}}\\])({NUMBER})\D*$|({NUMBER})\D*$"
_GLUED: Final = re.compile(r"[\w^\\√π]")
_GOES_ON: Final = re.compile(r"[\w^!%°√π]|\\[a-zA-Z]|[.,:]\d")
_MOST_PHRASES: Final = 3
_MOST_PIECES: Final = 40
"""Number of questions after which a text is no longer cut."""
_LONGEST_EXCERPT: Final = 400
_REMEMBERED: Final = 4096
"""Number of statements that are remembered from one batch of rows to the next."""


class ExtractionExplanation(NamedTuple):
    r"""How the answer of one text was found.

    Parameters
    ----------
    answer
        The answer, as `extract_answer` returns it.
    rule
        Name of the rule that decided, as in `extraction_rule`; None where no rule found its mark.
    start, end
        Where the answer stands in the text, in characters; None where it does not stand there as it is,
        for example because two boxes were joined.
    excerpt
        What the rule read.

    Examples
    --------
    >>> import ttsframe as tts
    >>> explanation = tts.answers.explain_extraction("So the answer is 12 cm. That is all.")
    >>> explanation.answer, explanation.rule, explanation.start
    ('12', 'phrase', 17)
    """

    answer: str | None
    rule: ExtractionRule | None
    start: int | None
    end: int | None
    excerpt: str | None


class _Found(NamedTuple):
    """What one rule found: which texts it decides, and of these alone answers and excerpts."""

    is_decided: Flags
    answers: pl.Series
    excerpts: pl.Series
    names: pl.Series | None = None
    """Names of the rules, where they differ from row to row."""


class _Outcome(NamedTuple):
    """What rules found in a column of texts: for each of them the texts that it decides."""

    height: int
    names: list[ExtractionRule]
    found: list[_Found]
    rows: list[Integers]

    def answers(self) -> pl.Series:
        return scattered([found.answers for found in self.found], self.rows, self.height)

    def excerpts(self) -> pl.Series:
        return scattered([found.excerpts for found in self.found], self.rows, self.height)

    def rules(self) -> pl.Series:
        names = [
            _constant(name, found.answers) if found.names is None else found.names
            for name, found in zip(self.names, self.found, strict=True)
        ]
        return scattered(names, self.rows, self.height).cast(_RULE)


class _Rule(NamedTuple):
    """A rule, and the mark of the texts on which it is tried: None is all."""

    name: ExtractionRule
    find: Callable[[pl.Series], _Found]
    mark: pl.Expr | None = None


_Chain: TypeAlias = tuple[_Rule, ...]


def extract_answer(
    completion: IntoExprColumn, *, style: AnswerStyle = "auto", cut_at_next_question: bool = True
) -> pl.Expr:
    r"""Find the final answer in each completion.

    The answer is returned as the model wrote it, without its box, delimiters or sentence; `answer_key` tells
    which answers are equivalent. It is returned whole: where a number, product, date or list goes on in a way
    that cannot be read, there is no answer. A text without an answer, or one that ends before its answer,
    gives null: such attempts abstain from votes. So do texts that repeat an instruction, such as
    `\boxed{answer}`.

    Parameters
    ----------
    completion
        String column, the texts that a model wrote. What stands between `<think>` and `</think>` is not read.
    style
        Where to look for the answer.

        - `"boxed"`: in the last `\boxed{...}` or `\fbox{...}`. Boxes joined by a comma, "and" or "or" are one
          answer. An empty box, or one cut off by the end of the text, gives null, even if there is an
          earlier box.
        - `"final_answer"`: after the last "the answer is", "Final Answer:" or the like, in English and
          twenty other languages, or in a JSON field `"answer"`.
        - `"hash"`: after the last `####`, as in GSM8K.
        - `"last_number"`: the last number of the text. `"auto"` never uses it, because it lets an
          unfinished attempt vote.
        - `"auto"`: the first of these rules that applies: "The final answer is X. I hope it is correct.",
          which ends the text; the last tag `<answer>`, `<final_answer>` or `<solution>`; the last box; a value
          after `####`; the announced answer; the conclusion of the last line ("Therefore, the sum is $7$.");
          a last line that is a value.
    cut_at_next_question
        Whether a text ends at the first line `Q:`, `Question:` or `Problem:` that follows a stated answer: base
        models go on with questions of their own.

    Returns
    -------
    pl.Expr
        String, named as the input; null where no answer is found and for a null text.

    See Also
    --------
    extraction_rule : Which rule found each answer.
    explain_extraction : The same for one text, with the part that was read.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({
    ...     "completion": [r"so $x = \boxed{\frac{1}{2}}$.", "#### 1,234", "Let me think about 3"]
    ... })
    >>> frame.select(tts.extract_answer("completion"))["completion"].to_list()
    ['\\frac{1}{2}', '1,234', None]
    """
    check_choice(style, "style", get_args(AnswerStyle))
    source = into_expr(completion, "completion")
    # One function, because Polars would repeat the search for each use of an intermediate result.
    extract = partial(_answers, style=style, cut=bool(cut_at_next_question))
    return map_column(source, extract, pl.String())


def extraction_rule(
    completion: IntoExprColumn, *, style: AnswerStyle = "auto", cut_at_next_question: bool = True
) -> pl.Expr:
    r"""Name the rule that found, or should have found, the final answer in each completion.

    Parameters
    ----------
    completion
        String column, the texts that a model wrote.
    style, cut_at_next_question
        As in `extract_answer`.

    Returns
    -------
    pl.Expr
        Enum, named as the input; null where no rule found its mark. A box that is empty or cut off has the rule
        `box` and no answer.

        - `final_sentence`: "The final answer is X. I hope it is correct.";
        - `tag`: `<answer>`, `<final_answer>` or `<solution>`;
        - `box`: `\boxed{...}` or `\fbox{...}`;
        - `hash`: `####`;
        - `field`: a field `"answer"` of a JSON object;
        - `phrase`: "the answer is", "Answer:", "the correct option is" and the like;
        - `conclusion`: the last sentence ("Therefore, the sum is $7$.");
        - `last_line`: a last line that is a value;
        - `whole_text`: a short text that is an answer;
        - `last_number`: only by that style.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> texts = pl.DataFrame({"completion": [r"It is $\boxed{5}$.", "The answer is 5.", "I cannot say"]})
    >>> rules = texts.select(tts.answers.extraction_rule("completion"))
    >>> rules["completion"].to_list()
    ['box', 'phrase', None]
    """
    check_choice(style, "style", get_args(AnswerStyle))
    source = into_expr(completion, "completion")
    name_rules = partial(_rules, style=style, cut=bool(cut_at_next_question))
    return map_column(source, name_rules, _RULE)


def explain_extraction(
    text: str, *, style: AnswerStyle = "auto", cut_at_next_question: bool = True
) -> ExtractionExplanation:
    r"""Tell which rule found the answer of one text, and where it stands.

    Parameters
    ----------
    text
        A text that a model wrote.
    style, cut_at_next_question
        As in `extract_answer`.

    Returns
    -------
    ExtractionExplanation
        The answer, the rule, the position and what the rule read.

    Raises
    ------
    ParameterTypeError
        If `text` is no string.

    Examples
    --------
    >>> import ttsframe as tts
    >>> tts.answers.explain_extraction("It is 5.\n#### 5")
    ExtractionExplanation(answer='5', rule='hash', start=14, end=15, excerpt=' 5')
    """
    check_choice(style, "style", get_args(AnswerStyle))
    if not isinstance(text, str):
        raise ParameterTypeError(
            f"text must be one string, got {type(text).__name__}. Hint: extraction_rule names the rules of a column."
        )
    # A lone surrogate cannot be a Polars string.
    clean = text.encode("utf-8", "replace").decode("utf-8")
    outcome = _search(
        pl.Series("text", [clean], dtype=pl.String), style=style, cut=bool(cut_at_next_question)
    )
    answer, rule, excerpt = outcome.answers()[0], outcome.rules()[0], outcome.excerpts()[0]
    excerpt = excerpt if excerpt is None else excerpt.rpartition("\0")[2]
    start = _position(clean, answer, excerpt, last=rule not in {"phrase", "field", "hash", "tag"})
    end = None if start is None else start + len(answer)
    if rule == "box":
        opening = max(clean.rfind("\\boxed"), clean.rfind("\\fbox"))
        excerpt = clean[opening : opening + _LONGEST_EXCERPT]
    return ExtractionExplanation(answer, rule, start, end, excerpt)


def _position(text: str, answer: str | None, excerpt: str | None, *, last: bool) -> int | None:
    """Return where the answer stands in the text, first of all inside the excerpt."""
    if answer is None:
        return None
    origin = text.rfind(excerpt) if excerpt else -1
    read = excerpt if excerpt and origin >= 0 else text
    places = [match.start() for match in re.finditer(re.escape(answer), read)]
    # the same digits may occur inside a longer number
    whole = [place for place in places if not _is_inside(read, place, place + len(answer))]
    if not (whole or places):
        return None
    return max(origin, 0) + (whole or places)[-1 if last else 0]


def _is_inside(text: str, start: int, end: int) -> bool:
    """Tell whether letters or digits go on before or after a part of a text."""
    before, after = text[start - 1 : start] if start else "", text[end : end + 2]
    return bool(_GLUED.fullmatch(before) or _GOES_ON.match(after))


def _answers(values: pl.Series, *, style: AnswerStyle, cut: bool) -> pl.Series:
    """Return the answers of a column of texts."""
    outcome = _search(as_strings(values, "completion"), style=style, cut=cut)
    return outcome.answers().alias(values.name)


def _rules(values: pl.Series, *, style: AnswerStyle, cut: bool) -> pl.Series:
    """Return the names of the rules of a column of texts."""
    outcome = _search(as_strings(values, "completion"), style=style, cut=cut)
    return outcome.rules().alias(values.name)


def _search(values: pl.Series, *, style: AnswerStyle, cut: bool) -> _Outcome:
    """Try one rule after another, each on the texts in which no earlier rule found its mark."""
    texts = _marks.without_marks_of_chats(values)
    if cut:
        texts = _marks.up_to_next_question(texts, _cut_at_question)
    return _apply(texts, _CHAINS[style])


def _apply(texts: pl.Series, chain: _Chain) -> _Outcome:
    """Read each text by the first rule that decides."""
    rows = texts.is_not_null().to_numpy().nonzero()[0]
    left = texts.drop_nulls() if texts.null_count() else texts
    outcome = _Outcome(len(texts), [], [], [])
    for rule in chain:
        found = _try(rule, left) if len(left) else None
        if found is None:
            continue
        outcome.names.append(rule.name)
        outcome.found.append(found)
        outcome.rows.append(rows[found.is_decided])
        rows = rows[~found.is_decided]
        left = left.filter(pl.Series(~found.is_decided))
    return outcome


def _try(rule: _Rule, texts: pl.Series) -> _Found | None:
    """Apply a rule to the texts that hold its mark; None where it decides no text."""
    if rule.mark is None:
        found = rule.find(texts)
        return found if found.is_decided.any() else None
    is_marked = computed(texts, rule.mark).to_series()
    if not is_marked.any():
        return None
    found = rule.find(texts.filter(is_marked))
    is_decided = is_marked.to_numpy().copy()
    is_decided[is_decided] = found.is_decided
    return found._replace(is_decided=is_decided) if len(found.answers) else None


def _cut_at_question(texts: pl.Series) -> pl.Series:
    """Cut texts that hold question lines."""
    pieces = _marks.question_pieces(texts)
    exploded = (
        pl
        .DataFrame({"piece": pieces.list.head(_MOST_PIECES), "n": pieces.list.len()})
        .with_row_index("row")
        .with_columns(place=pl.int_ranges(pl.col("piece").list.len()))
        .explode("piece", "place")
    )
    is_stated = _apply(_marks.without_question(exploded["piece"]), _STATED).answers().is_not_null()
    # what follows the last question line is no reason to cut
    is_stated &= exploded["place"] < exploded["n"] - 1
    kept = (
        exploded
        .with_columns(is_stated=is_stated)
        .with_columns(first=pl.col("place").filter("is_stated").min().over("row"))
        .filter(pl.col("place") <= pl.col("first"))
        .group_by("row")
        .agg(kept=pl.col("piece").str.join(""))
    )
    rows = texts.to_frame("text").with_row_index("row")
    cut = rows.join(kept, on="row", how="left", maintain_order="left")["kept"]
    return prefer(_marks.without_question(cut), texts)


def _where_read(answers: pl.Series, excerpts: pl.Series) -> _Found:
    """Decide the texts that have an answer."""
    is_read = answers.is_not_null()
    return _Found(is_read.to_numpy(), answers.filter(is_read), excerpts.filter(is_read))


def _in_final_sentence(texts: pl.Series) -> _Found:
    """Read the sentence that ends a text in the form of Minerva's prompt, and no box before it."""
    cut = _marks.up_to_final_sentence(texts)
    ended = cut.is_not_null().to_numpy()
    cut = cut.drop_nulls()
    if not len(cut):
        return _Found(ended, cut, cut)
    stated = _marks.in_final_sentence(cut)
    answers = boxed_answers(stated)
    answers = prefer(
        answers, per_distinct("\0" + keep_where(stated, answers.is_null()), _read_statement)
    )
    otherwise = only_where(cut, answers.is_null(), lambda some: _apply(some, _AUTO).answers())
    return _Found(ended, prefer(answers, otherwise), stated)


def _in_tag(texts: pl.Series) -> _Found:
    """Read the content of the last tag by the other rules, or as it is."""
    contents = _marks.tagged(texts)
    is_short = ~has_box(contents) & (contents.str.len_chars() <= _statements.REACH)
    answers = per_distinct(keep_where(contents, is_short), _statements.answer_tagged)
    inside = only_where(contents, answers.is_null(), lambda some: _apply(some, _AUTO[1:]).answers())
    return _Found(np.ones(len(texts), dtype=bool), prefer(answers, inside), contents)


def _in_box(texts: pl.Series) -> _Found:
    """Read the last box."""
    return _Found(np.ones(len(texts), dtype=bool), last_box(texts), nothing_for(texts))


def _after_hashes(texts: pl.Series) -> _Found:
    """Read a value after the last `####`; a heading has none."""
    hashed = _marks.after_hashes(texts)
    return _where_read(per_distinct(hashed, _statements.answer_after_hash), hashed)


def _anything_after_hashes(texts: pl.Series) -> _Found:
    """Read what follows the last `####` as an announced answer."""
    hashed = _marks.after_hashes(texts)
    return _where_read(per_distinct(hashed, _statements.answer_announced), hashed)


def _number_at_end(texts: pl.Series) -> _Found:
    """Read a number that ends a text behind a phrase, without looking for phrases in the whole text."""
    numbers = _marks.number_at_end(texts)
    return _where_read(numbers, numbers)


def _in_phrase(texts: pl.Series) -> _Found:
    """Read what follows the last phrase that announces an answer, or the one before it if that says nothing."""
    rows = np.arange(len(texts))
    pieces = _marks.phrase_pieces(texts)
    places: list[Integers] = []
    answers: list[pl.Series] = []
    excerpts: list[pl.Series] = []
    for place in range(1, _MOST_PHRASES + 1):
        goes_on = pieces.list.len() > place
        rows, pieces = rows[goes_on.to_numpy()], pieces.filter(goes_on)
        if not len(rows):
            break
        statements = _marks.after_phrase(pieces, place)
        found = _where_read(per_distinct(statements, _read_statement), statements)
        places.append(rows[found.is_decided])
        answers.append(found.answers)
        excerpts.append(found.excerpts)
        rows, pieces = rows[~found.is_decided], pieces.filter(pl.Series(~found.is_decided))
    found = _where_read(
        scattered(answers, places, len(texts)), scattered(excerpts, places, len(texts))
    )
    phrase, field = _constant("phrase", found.answers), _constant("field", found.answers)
    return found._replace(names=field.zip_with(_marks.has_field(found.excerpts), phrase))


def _in_ending(texts: pl.Series, *, is_text: bool = True) -> _Found:
    """Read the last few hundred characters: a conclusion, a value, or a text that is an answer itself."""
    endings = _marks.finished_endings(texts)
    read = per_distinct(endings, partial(_read_ending, is_text=is_text))
    found = _where_read(read, endings)
    parts = found.answers.str.splitn("\0", 2).struct.unnest()
    return found._replace(names=parts["field_0"].cast(_RULE), answers=parts["field_1"])


def _read_ending(ending: str, *, is_text: bool) -> str | None:
    """Return the name of a rule and the answer that it finds, with a null character between them."""
    # "A: 12" before a next question is a text of its own
    is_whole = len(ending) < _statements.REACH and (is_text or ending.lstrip().startswith("A:"))
    for rule, read in _READERS:
        answer = read(ending) if is_whole or rule != "whole_text" else None
        if answer:
            return f"{rule}\0{answer}"
    return None


_READERS: Final[tuple[tuple[ExtractionRule, Callable[[str], str | None]], ...]] = (
    ("conclusion", _statements.answer_concluded),
    ("last_line", _statements.answer_on_last_line),
    ("whole_text", _statements.answer_itself),
)


def _last_number(texts: pl.Series) -> _Found:
    """Read the last number of each text."""
    numbers = texts.str.extract(_LAST_NUMBER, 1)
    numbers = prefer(numbers, keep_where(texts, numbers.is_null()).str.extract(_LAST_NUMBER, 2))
    found = _where_read(numbers, numbers)
    return found._replace(excerpts=nothing_for(found.answers))


@lru_cache(maxsize=_REMEMBERED)
def _read_statement(statement: str) -> str | None:
    """Read a statement, given behind the end of its phrase; a box inside it is opened."""
    plain = _statements.plain_value(statement)
    if plain:
        return plain
    before, _, text = statement.partition("\0")
    answer = _statements.answer_announced(text, before)
    return last_boxes(answer) if answer and "\\boxed" in answer else answer


def _constant(rule: ExtractionRule, texts: pl.Series) -> pl.Series:
    """Return a column with the name of a rule."""
    return pl.Series([rule], dtype=_RULE).new_from_index(0, len(texts))


_BOX: Final = _Rule("box", _in_box, HAS_BOX)
_PHRASES: Final = (
    _Rule("phrase", _number_at_end),
    _Rule("phrase", _in_phrase, _marks.HAS_PHRASE),
)
_MARKED: Final[_Chain] = (
    _Rule("tag", _in_tag, _marks.HAS_TAG),
    _BOX,
    _Rule("hash", _after_hashes, _marks.HAS_HASHES),
    *_PHRASES,
)
_AUTO: Final[_Chain] = (*_MARKED, _Rule("conclusion", _in_ending))
# a piece of a text is no short text
_STATED: Final[_Chain] = (*_MARKED, _Rule("conclusion", partial(_in_ending, is_text=False)))
_CHAINS: Final[dict[AnswerStyle, _Chain]] = {
    "auto": (_Rule("final_sentence", _in_final_sentence, _marks.HAS_HOPE), *_AUTO),
    "boxed": (_BOX,),
    "final_answer": _PHRASES,
    "hash": (_Rule("hash", _anything_after_hashes, _marks.HAS_HASHES),),
    "last_number": (_Rule("last_number", _last_number),),
}
