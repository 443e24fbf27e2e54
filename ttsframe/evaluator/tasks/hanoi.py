"""The Tower of Hanoi: each move is checked against the state of the pegs."""

from __future__ import annotations

from itertools import permutations
from typing import ClassVar, Final

from ttsframe.errors import DataError
from ttsframe.evaluator.tasks._moves import MOST_MOVES, PEGS, Move, find_moves, with_discs
from ttsframe.evaluator.tasks.task import Findings, SeededTask, TaskInstance

__all__ = ["TowerOfHanoi"]

_STRETCH: Final = 4
"""Longest solution that is accepted, in multiples of the optimum."""


class TowerOfHanoi(SeededTask):
    r"""Move a tower of `complexity` discs from one of three pegs to another.

    The shortest solution takes :math:`2^n - 1` moves. Each move is simple; the number of moves that
    must be made without a mistake grows.

    Parameters
    ----------
    optimal
        Whether a solution must be the shortest. By default any legal solution of at most four times
        that length is right, since a detour is not a collapse of reasoning.
    seed
        Seed of the instances, 0 to 2^64 - 1.

    See Also
    --------
    ArithmeticSequence : Answers that are one number.
    LogicalDeduction : Answers that are an order.

    Notes
    -----
    Complexity is the number of discs, 1 to 16. Instances of a level differ in the pegs where the
    tower starts and ends: six pairs, in an order that the seed determines, and then again.

    Moves are read in these notations, in upper or lower case, with Markdown and LaTeX around them:
    ``Move disk 1 from peg A to peg C``, ``(1, A, C)``, ``1: A -> C``, ``A -> C``,
    ``[[1, 0, 2], ...]``, JSON objects and tables. Pegs may be numbers: 0, 1, 2 for A, B, C, or 1,
    2, 3 if there is a 3 and no 0. Numbers that run 1, 2, 3, ... from the first move to the last
    count the moves, not the discs.

    If there are several lists, the answer is the first one after the last marker
    (``Final answer``, ``Answer:``, ``Solution:``, ``Moves:``, ``moves =``, ``\boxed``, ``####``,
    ``</think>``) that is followed by moves; without a marker it is the last list. A list has one
    notation, so remarks in another one do not interrupt it (the longer list counts), and ends where
    400 characters follow without a move.

    `parse` can read its own result. A disc that the response does not name is the top one; after an
    illegal move it is left out. There is no answer without moves, with more than 262,140 moves, or
    with pegs numbered both from 0 and from 1; illegal moves are an answer, but not a right one.

    A solution is right if every move is legal and the tower ends on the right peg. `error_message`
    names the first illegal move, numbered from 1; `metadata` contains `n_moves` and `n_legal`, the
    number of moves before the first illegal one.

    References
    ----------
    P. Shojaee et al. The Illusion of Thinking: Understanding the Strengths and Limitations of
    Reasoning Models via the Lens of Problem Complexity. arXiv:2506.06941, 2025, appendix A.1.1.

    Examples
    --------
    >>> from ttsframe.evaluator import TowerOfHanoi
    >>> task = TowerOfHanoi(seed=3)
    >>> instance = task.generate_instance(2)
    >>> instance.metadata["start"], instance.metadata["goal"], instance.ground_truth
    ('A', 'C', '1:A>B 2:A>C 1:B>C')
    >>> task.verify_solution(instance, "Final answer: A -> B, A -> C, B -> C").is_correct
    True
    >>> task.parse("First disk 1 from A to B, then move disk 2 from A to C.")
    '1:A>B 2:A>C'
    >>> task.verify_solution(instance, "(1, A, C), (1, C, B), (2, A, B)").error_message
    'move 3: disc 2 from A to B, but disc 1 lies there.'
    >>> task.verify_solution(instance, "[[1, 0, 1], [2, 0, 2]]").error_message
    'after 2 moves disc 1 is on peg B, not C.'
    """

    name = "tower_of_hanoi"
    complexities: ClassVar[tuple[int, int]] = (1, 16)

    def __init__(self, *, optimal: bool = False, seed: int = 0) -> None:
        super().__init__(seed=seed)
        self.optimal = optimal

    def _make(self, complexity: int, index: int) -> TaskInstance:
        """Make an instance; the pairs of pegs take turns, so they are balanced."""
        pairs = list(permutations(range(3), 2))
        self._stream(complexity).shuffle(pairs)
        start, goal = pairs[index % len(pairs)]
        discs = "1 disc" if complexity == 1 else f"{complexity} discs"
        numbered = "" if complexity == 1 else f", numbered 1 (the smallest) to {complexity}"
        fewest = "Use as few moves as possible. " if self.optimal else ""
        prompt = (
            f"There are three pegs, A, B and C, and {discs}{numbered}, all on peg {PEGS[start]} with the "
            f"largest at the bottom. Move the whole tower to peg {PEGS[goal]}. One disc is moved at a time, only "
            "the topmost disc of a peg can be moved, and no disc may be put on a smaller one. "
            f'{fewest}End with a line "Final answer:" and below it one move per line in the form '
            '"Move disk <number> from <peg> to <peg>".'
        )
        return TaskInstance(
            prompt,
            complexity,
            _written(_shortest(complexity, start, goal)),
            {"start": PEGS[start], "goal": PEGS[goal], "optimal_length": 2**complexity - 1},
        )

    def parse(self, response: str) -> str | None:
        """Read the moves, whatever their notation, as disc, source and target: ``1:A>C 2:A>B``."""
        moves = find_moves(response)
        return None if isinstance(moves, int) or not moves else _written(with_discs(moves))

    def _verify(self, instance: TaskInstance, response: str) -> Findings:
        """Make the moves one by one."""
        start, goal = _ends(instance)
        n_discs = instance.complexity
        moves = find_moves(response)
        n_moves = moves if isinstance(moves, int) else len(moves)
        n_legal = 0
        shortest = 2**n_discs - 1
        if isinstance(moves, int) or n_moves > _STRETCH * shortest:
            longest = min(_STRETCH * shortest, MOST_MOVES)
            message = (
                f"{n_moves} moves, more than {longest}, which is {_STRETCH} times the optimum."
            )
        elif not moves:
            message = "no moves found."
        else:
            pegs: list[list[int]] = [[], [], []]
            pegs[start] = list(range(n_discs, 0, -1))
            n_legal, message = _make_moves(moves, pegs)
            if not message and len(pegs[goal]) < n_discs:
                message = _unsolved(n_moves, pegs, goal)
            if not message and self.optimal and n_moves > shortest:
                message = f"{n_moves} moves, but {shortest} are enough."
        return message or None, {"n_moves": n_moves, "n_legal": n_legal}

    def wrong_answer(self, instance: TaskInstance, number: int) -> str:
        """Return the shortest solution with one move to the other peg, or with void moves at the end."""
        moves = _shortest(instance.complexity, *_ends(instance))
        times, place = divmod(number, len(moves))
        disc, source, target = moves[place]
        moves[place] = Move(disc, source, 3 - source - target)
        return _written([*moves, *[Move(instance.complexity, source, source)] * times])


def _ends(instance: TaskInstance) -> tuple[int, int]:
    """Return the pegs where the tower starts and ends."""
    ends = [instance.metadata.get(name) for name in ("start", "goal")]
    if not all(isinstance(end, str) and len(end) == 1 and end in PEGS for end in ends):
        raise DataError(
            f"metadata of the instance has start and goal {ends}, must be two of A, B and C. "
            "Hint: is it an instance of TowerOfHanoi?"
        )
    start, goal = (PEGS.index(str(end)) for end in ends)
    return start, goal


def _shortest(n_discs: int, start: int, goal: int) -> list[Move]:
    """Return the shortest solution."""
    if n_discs == 0:
        return []
    third = 3 - start - goal
    before, after = _shortest(n_discs - 1, start, third), _shortest(n_discs - 1, third, goal)
    return [*before, Move(n_discs, start, goal), *after]


def _written(moves: list[Move]) -> str:
    """Write moves in canonical form."""
    return " ".join(
        f"{'' if disc is None else f'{disc}:'}{PEGS[source]}>{PEGS[target]}"
        for disc, source, target in moves
    )


def _make_moves(moves: list[Move], pegs: list[list[int]]) -> tuple[int, str]:
    """Make moves until one is illegal; return the number of legal ones, and the error."""
    for n_legal, move in enumerate(moves):
        wrong = _illegal(move, pegs)
        if wrong:
            disc = "" if move.disc is None else f"disc {move.disc} "
            return (
                n_legal,
                f"move {n_legal + 1}: {disc}from {PEGS[move.source]} to {PEGS[move.target]}, but {wrong}.",
            )
        pegs[move.target].append(pegs[move.source].pop())
    return len(moves), ""


def _illegal(move: Move, pegs: list[list[int]]) -> str:
    """Return why a move is illegal; an empty text if it is legal."""
    source, target = pegs[move.source], pegs[move.target]
    if move.disc is not None and move.disc not in source:
        places = [peg for peg, stack in zip(PEGS, pegs, strict=True) if move.disc in stack]
        return f"it lies on peg {places[0]}" if places else f"the discs are 1 to {_height(pegs)}"
    if move.source == move.target:
        return "these are the same peg"
    if not source:
        return f"peg {PEGS[move.source]} is empty"
    if move.disc not in {None, source[-1]}:
        return f"disc {source[-1]} lies on it"
    if target and target[-1] < source[-1]:
        return f"disc {target[-1]} lies there"
    return ""


def _height(pegs: list[list[int]]) -> int:
    """Count the discs."""
    return sum(map(len, pegs))


def _unsolved(n_moves: int, pegs: list[list[int]], goal: int) -> str:
    """Return the error of a tower that did not arrive, with its largest misplaced disc."""
    disc, peg = max(
        (disc, peg)
        for peg, stack in zip(PEGS, pegs, strict=True)
        for disc in stack
        if peg != PEGS[goal]
    )
    count = "1 move" if n_moves == 1 else f"{n_moves} moves"
    return f"after {count} disc {disc} is on peg {peg}, not {PEGS[goal]}."
