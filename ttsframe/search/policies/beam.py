"""Beam search, and DVTS, which is one beam search per subtree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import polars as pl

from ttsframe._checks import check_choice, check_positive
from ttsframe._settings import found
from ttsframe._typing import Flags, Integers
from ttsframe.errors import ParameterError
from ttsframe.search.policies.arrays import column, reasons, scores_of
from ttsframe.search.policies.kernels import Groups, make_groups, ranks, spread
from ttsframe.search.policies.policy import Policy

__all__ = ["DVTS", "Beam"]

Keep: TypeAlias = Literal["width_over_m", "sqrt"]
Extras: TypeAlias = Literal["best", "first"]
Shares: TypeAlias = Literal["exact", "ceil"]
Ends: TypeAlias = Literal["finished", "best"]


@dataclass(frozen=True)
class Beam(Policy):
    """Beam search: the best paths of a round are kept, and the width is spread over them.

    Parameters
    ----------
    width
        Number of solutions. A finished solution takes one from the width of later rounds.
    beam_width
        Continuations of a kept path, M: one path in M is kept.
    keep
        Number of kept paths: "width_over_m" (the width that is left over `beam_width`, rounded up),
        "sqrt" (the square root of the width, rounded up), or a number.
    finished_reduce_width
        Whether a finished solution takes one from the width. If not, every round asks for `width`
        steps until no path is unfinished.
    extras
        Which kept paths get one continuation more where the width is no multiple: the "best", or the
        "first" in the order of the round.
    shares
        "exact" spends the width exactly; "ceil" rounds the share of each kept path up.
    prefers_later
        Whether of equal scores the later path ranks first.
    **parameters
        Those of `tts.search.Policy`.

    Examples
    --------
    >>> import ttsframe as tts
    >>> problems, generator, prm = tts.search.simulate(2, seed=0)
    >>> nodes = tts.search.search(problems, generator, prm, tts.search.Beam(8), seed=0)
    >>> nodes.filter(round=0).group_by("problem_id", maintain_order=True).agg("is_kept")[
    ...     "is_kept"
    ... ].list.sum().to_list()
    [2, 2]
    """

    beam_width: int = 4
    keep: Keep | int = "width_over_m"
    finished_reduce_width: bool = True
    extras: Extras = "best"
    shares: Shares = "exact"
    prefers_later: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self.beam_width, "beam_width")
        if isinstance(self.keep, int):
            check_positive(self.keep, "keep")
        else:
            check_choice(self.keep, "keep", get_args(Keep))
        check_choice(self.extras, "extras", get_args(Extras))
        check_choice(self.shares, "shares", get_args(Shares))

    @property
    def name(self) -> str:
        """Name of the policy, as trajectories carry it."""
        return "beam"

    def ask(self, frontier: pl.DataFrame, /) -> pl.DataFrame:
        """Keep the best paths of each problem, and spread the width that is left over them."""
        groups = make_groups(column(frontier, "problem"))
        done = groups.first(column(frontier, "n_finished")) if self.finished_reduce_width else 0
        width = np.maximum(self.width - done, 0) + np.zeros_like(groups.starts)
        if self.keep == "width_over_m":
            n_kept = -(-width // self.beam_width)
        elif self.keep == "sqrt":
            n_kept = np.ceil(np.sqrt(width)).astype(np.int64)
        else:
            n_kept = np.full(len(width), self.keep)
        order = ranks(groups, scores_of(frontier), prefers_later=self.prefers_later)
        return self._shared(groups, order, order < n_kept[groups.of_row], width)

    def _shared(
        self, groups: Groups, order: Integers, is_kept: Flags, width: Integers
    ) -> pl.DataFrame:
        by = order if self.extras == "best" else groups.position
        given = spread(groups, is_kept, by, width)
        if self.shares == "ceil":
            n_kept = np.add.reduceat(is_kept.astype(np.int64), groups.starts)
            given = np.where(is_kept, (-(-width // np.maximum(n_kept, 1)))[groups.of_row], 0)
        return reasons(given, width[groups.of_row] == 0, "pruned")


@dataclass(frozen=True)
class DVTS(Policy):
    """Diverse verifier tree search: beam searches of width `beam_width` that never mix.

    The first steps are dealt to subtrees, and each subtree keeps its best path. One step with a high
    score can take over its own subtree only.

    Parameters
    ----------
    width
        Number of solutions.
    beam_width
        Continuations of a subtree's best path, M; or "sqrt", for a number of subtrees that is the
        square root of the width, rounded up. Otherwise the width must be a multiple of M.
    ends
        When a subtree ends: "finished", when M of its solutions are finished; or "best", as soon as
        its best candidate is finished, when all candidates of the round are returned, finished or not.
    **parameters
        Those of `tts.search.Policy`.

    References
    ----------
    Beeching, Tunstall and Rush (2024), Scaling test-time compute with open models.

    Examples
    --------
    >>> import ttsframe as tts
    >>> problems, generator, prm = tts.search.simulate(2, seed=0)
    >>> nodes = tts.search.search(problems, generator, prm, tts.search.DVTS(8), seed=0)
    >>> nodes.filter(round=1)["subtree"].unique().sort().to_list()
    [0, 1]
    """

    beam_width: int | Literal["sqrt"] = 4
    ends: Ends = "finished"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.ends, "ends", get_args(Ends))
        if self.beam_width != "sqrt":
            check_positive(self.beam_width, "beam_width")
            if self.width % self.beam_width:
                raise ParameterError(
                    f"{found('width', self.width)}, must be a multiple of beam_width ({self.beam_width}). "
                    "Hint: DVTS searches width / beam_width subtrees of equal width."
                )

    @property
    def name(self) -> str:
        """Name of the policy, as trajectories carry it."""
        return "dvts"

    @property
    def subtree_size(self) -> int:
        """Number of first steps that one subtree begins with."""
        if self.beam_width != "sqrt":
            return self.beam_width
        n_subtrees = int(np.ceil(np.sqrt(self.width)))
        return -(-self.width // n_subtrees)

    @property
    def keeps_finished(self) -> bool:
        """Whether finished solutions stay in the frontier: where they decide when a subtree ends."""
        return self.ends == "best"

    def ask(self, frontier: pl.DataFrame, /) -> pl.DataFrame:
        """Continue the best path of each subtree."""
        is_root = column(frontier, "depth") == 0
        groups = make_groups(column(frontier, "problem"), column(frontier, "subtree"))
        is_start = is_root[groups.starts]
        first = groups.first(column(frontier, "subtree"))
        # The last subtree is smaller where the width is no multiple.
        width = np.minimum(self.subtree_size, self.width - first * self.subtree_size)
        done = 0 if self.ends == "best" else groups.first(column(frontier, "n_finished_subtree"))
        width = np.where(is_start, self.width, np.maximum(width - done, 0))
        is_best = ranks(groups, scores_of(frontier)) == 0
        given = np.where(is_best, width[groups.of_row], 0)
        answer = reasons(given, width[groups.of_row] == 0, "pruned")
        if self.ends == "finished":
            return answer
        is_finished = frontier["is_terminal"].to_numpy()
        ends = np.bitwise_or.reduceat(is_best & is_finished, groups.starts)[groups.of_row]
        return answer.select(
            n_allocated=pl.when(pl.Series(ends)).then(0).otherwise("n_allocated"),
            dropped_because=pl.when(~pl.Series(ends)).then("dropped_because"),
        )
