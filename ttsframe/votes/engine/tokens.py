"""Answers' texts as sets of tokens, so that the overlap of two is the size of an intersection."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ttsframe.votes.engine.runs import run_lengths, run_starts

N_TOKENS_MAX: Final = 256
"""Tokens of an answer that are compared; what follows them is not."""

_PATTERN: Final = r"\\[A-Za-z]+|\p{L}+|\d+(?:\.\d+)?|\S"

Integers = npt.NDArray[np.int64]


class Tokens(NamedTuple):
    """Tokens of the distinct texts of a run.

    - `text` (n_rows,): which text each attempt's answer is, -1 for no answer;
    - `starts` (n_texts + 1,): where each text's tokens begin;
    - `token` (n_tokens,): numbers, all of a text different: the second of two equal tokens has a
      number of its own, so that what two texts share is their multisets' intersection.
    """

    text: Integers
    starts: Integers
    token: Integers

    def take(self, rows: Integers | slice) -> Tokens:
        """Return the tokens of some rows' texts.

        Parameters
        ----------
        rows
            Rows, in the order wanted.

        Returns
        -------
        Tokens
            With the same texts.
        """
        return self._replace(text=self.text[rows])


def tokenize(texts: pl.Series) -> Tokens:
    """Cut texts into commands, words, numbers and single characters.

    Parameters
    ----------
    texts
        Categories, one per row; null for no answer.

    Returns
    -------
    Tokens
        Their tokens.
    """
    distinct = texts.unique().drop_nulls()
    codes = distinct.to_physical().to_numpy()
    number_of_code = np.full(int(codes.max(initial=0)) + 2, -1)
    number_of_code[codes.astype(np.int64) + 1] = np.arange(len(codes))
    # Null has the code 0 here, and no number.
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
