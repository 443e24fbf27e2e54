"""Texts of answers as sets of tokens, so that the overlap of two texts is an intersection."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import polars as pl

from ttsframe._typing import Integers
from ttsframe.votes.engine.runs import run_lengths, run_starts

N_TOKENS_MAX: Final = 256
"""Number of tokens of an answer that are compared; the rest is ignored."""

_PATTERN: Final = r"\\[A-Za-z]+|\p{L}+|\d+(?:\.\d+)?|\S"


class Tokens(NamedTuple):
    """Tokens of the distinct texts of a run."""

    text: Integers
    """(n_rows,): the text of each attempt's answer, -1 for no answer."""
    starts: Integers
    """(n_texts + 1,): where the tokens of each text begin."""
    token: Integers
    """(n_tokens,): numbers, distinct within a text: the second of two equal tokens has a number of
    its own, so that sets of numbers intersect as multisets of tokens do."""

    def take(self, rows: Integers | slice) -> Tokens:
        """Return the tokens of the texts of some rows."""
        return self._replace(text=self.text[rows])


def tokenize(texts: pl.Series) -> Tokens:
    """Split categorical texts into LaTeX commands, words, numbers and single characters."""
    distinct = texts.unique().drop_nulls()
    codes = distinct.to_physical().to_numpy()
    number_of_code = np.full(int(codes.max(initial=0)) + 2, -1)
    number_of_code[codes.astype(np.int64) + 1] = np.arange(len(codes))
    # A null has code 0 here, and no number.
    code = (texts.to_physical().cast(pl.Int64) + 1).fill_null(0).to_numpy()
    cut = distinct.cast(pl.String).str.extract_all(_PATTERN).list.head(N_TOKENS_MAX)
    lengths = cut.list.len().cast(pl.Int64).to_numpy()
    tokens = cut.explode(empty_as_null=False)
    # Numbers in the order of the tokens: sums over them do not depend on the order of rows.
    kinds = tokens.unique().sort()
    kind = tokens.cast(pl.Enum(kinds)).to_physical().cast(pl.Int64).to_numpy()
    packed = np.repeat(np.arange(len(distinct)), lengths) * max(len(kinds), 1) + kind
    packed.sort()
    starts = run_starts(packed)
    nth = np.arange(len(packed)) - np.repeat(starts, run_lengths(starts, len(packed)))
    return Tokens(
        text=number_of_code[code],
        starts=np.append(0, np.cumsum(lengths)),
        token=packed % max(len(kinds), 1) * N_TOKENS_MAX + nth,
    )
