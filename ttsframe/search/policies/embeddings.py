"""Embeddings of steps, from any callable, and how alike they are."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from ttsframe._typing import Floats, Integers
from ttsframe.errors import CompletionError, ParameterTypeError

__all__ = ["word_vectors"]

_WORD: Final = re.compile(r"\w+|[^\w\s]")
_DIMENSIONS: Final = 512
_ONE_THREAD: Final = 1 << 18
"""Multiplications up to which OpenBLAS takes one thread."""

Embedder: TypeAlias = Callable[[pl.Series], npt.ArrayLike]
"""Texts of steps to a matrix with one row per text."""


def word_vectors(texts: pl.Series) -> Floats:
    """Embed texts by the words that they hold, without a model.

    Every word adds one to a position that its checksum decides. It tells rephrased steps from copies, and
    knows nothing of meaning: give `Dora` and `ETS` a model's embeddings where there is one.

    Parameters
    ----------
    texts
        Texts of steps.

    Returns
    -------
    numpy.ndarray
        A matrix with one row per text.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> a, b, c = tts.search.word_vectors(pl.Series(["x = 2", "2 = x", "add 7"]))
    >>> float(a @ b), float(a @ c)
    (3.0, 0.0)
    """
    matrix = np.zeros((len(texts), _DIMENSIONS))
    for row, text in enumerate(texts.to_list()):
        for word in _WORD.findall(text or ""):
            place = zlib.crc32(word.encode("utf-8", "surrogatepass")) % _DIMENSIONS
            matrix[row, place] += 1.0
    return matrix


def check_embedder(embed: object) -> None:
    """Check that an argument can be called."""
    if not callable(embed):
        raise ParameterTypeError(
            f"embed must be callable, got {type(embed).__name__}. Hint: a function from a polars Series of texts "
            "to a matrix with one row per text."
        )


def embedded(embed: Embedder, texts: pl.Series) -> Floats:
    """Embed distinct texts once, as vectors of length 1."""
    distinct = texts.unique(maintain_order=True)
    matrix = np.asarray(embed(distinct), dtype=np.float64)
    if matrix.ndim != 2 or len(matrix) != len(distinct):
        raise CompletionError(
            f"embed: returned an array of shape {matrix.shape} for {len(distinct)} texts, must have one row "
            "per text."
        )
    if not np.isfinite(matrix).all():
        raise CompletionError("embed: a number is not finite.")
    length = np.linalg.norm(matrix, axis=1, keepdims=True)
    matrix = matrix / np.where(length > 0, length, 1.0)
    rows = pl.DataFrame({"text": distinct, "row": np.arange(len(distinct))})
    found = texts.to_frame("text").join(
        rows, on="text", how="left", maintain_order="left", nulls_equal=True
    )
    return np.asarray(matrix[found["row"].to_numpy()])


def _cosines(vectors: Floats) -> Floats:
    """Return the cosine of each pair of vectors of length 1."""
    # In products as small as these, BLAS takes one thread. Several wait for each other, a hundred times longer
    # than the product takes where other programs keep the processors busy.
    rows = max(_ONE_THREAD // max(vectors.size, 1), 1)
    starts = range(0, len(vectors), rows)
    return np.concatenate([vectors[start : start + rows] @ vectors.T for start in starts])


def uniqueness(vectors: Floats, temperature: float) -> Floats:
    """Return the diagonal of the row softmax of cosines: 1 for a step unlike all others."""
    logits = _cosines(vectors) / temperature
    logits -= logits.max(axis=1, keepdims=True)
    weights = np.exp(logits)
    return np.asarray(np.diagonal(weights) / weights.sum(axis=1))


def clusters(vectors: Floats, cut: float) -> Integers:
    """Return the cluster of each vector, from 0: average linkage, cut at a cosine distance."""
    from scipy.cluster.hierarchy import fcluster, linkage

    n = len(vectors)
    if n == 1:
        return np.zeros(1, dtype=np.int64)
    upper = np.triu_indices(n, 1)
    distances = np.maximum(1.0 - _cosines(vectors)[upper], 0.0)
    tree = linkage(distances, method="average")
    return np.asarray(fcluster(tree, t=cut, criterion="distance") - 1, dtype=np.int64)
