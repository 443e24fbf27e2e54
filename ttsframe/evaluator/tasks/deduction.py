"""Logical deduction: the only order of birds in a row that satisfies all clues."""

from __future__ import annotations

from math import factorial
from typing import ClassVar

from ttsframe.errors import DataError
from ttsframe.evaluator._stream import Stream
from ttsframe.evaluator.tasks._clues import Clue, as_clue, holds, is_unique, sentence, true_clues
from ttsframe.evaluator.tasks._orders import NAMES, find_order
from ttsframe.evaluator.tasks.task import Findings, SeededTask, TaskInstance

__all__ = ["LogicalDeduction"]


class LogicalDeduction(SeededTask):
    r"""Find the only order of `complexity` birds in a row that satisfies all clues.

    Every clue is needed: without any one of them a second order is possible. The number of orders
    grows as the factorial of the complexity.

    Parameters
    ----------
    seed
        Seed of the instances, 0 to 2^64 - 1.

    See Also
    --------
    TowerOfHanoi : Answers that are long.
    ArithmeticSequence : Answers that are one number.

    Notes
    -----
    Complexity is the number of birds, 2 to 16. Clues say that a bird is somewhere to the left of
    another, immediately to the left of it, next to it, that a number of birds stand between the two,
    or that a bird is not in a place. True clues are added in random order until an exact solver finds
    only one order; then the unnecessary ones are removed.

    An answer is a list of distinct names within 60 characters of each other: ``owl, finch, robin``,
    ``owl > finch > robin``, numbered lines, JSON lists and objects. If every name has a place beside
    it (``2. finch``, ``the finch is second``, ``{"finch": 2}``), the places give the order; "right
    to left" just before a list reverses it. The answer is the longest list after the last marker
    (``Final answer``, ``Answer:``, ``Order:``, ``\boxed``, ``####``, ``</think>``) that is followed
    by a name, the first one in a tie. Without a marker it is the list at the end of the response,
    with at most 60 characters after it, because other lists may repeat the clues.

    A list that lacks birds is an answer, but not a right one. An answer is verified against the clues,
    not against the stored order; `error_message` names the first clue that does not hold, and
    `metadata` contains `violated`, the numbers of all such clues, if each bird is listed.

    Examples
    --------
    >>> from ttsframe.evaluator import LogicalDeduction
    >>> task = LogicalDeduction(seed=1)
    >>> instance = task.generate_instance(3)
    >>> print(instance.prompt)
    3 birds sit in a row, in places 1 to 3 from left to right. In alphabetical order they are:
    magpie, raven, swan.
    1. The magpie is not in place 2.
    2. The magpie is immediately to the left of the raven.
    Exactly one order fits. End with a line of the form "Final answer: <bird>, <bird>, ...", from
    left to right.
    >>> instance.ground_truth
    'magpie, raven, swan'
    >>> task.verify_solution(instance, "Final answer: swan, raven, magpie").error_message
    'clue 2 of 2 does not hold: The magpie is immediately to the left of the raven.'
    >>> task.parse("3. Owl, 1. **Finch**, 2. robin")
    'finch, robin, owl'
    """

    name = "logical_deduction"
    complexities: ClassVar[tuple[int, int]] = (2, len(NAMES))

    def _make(self, complexity: int, index: int) -> TaskInstance:
        """Draw an order, and clues that exclude all others."""
        stream = self._stream(complexity, index)
        pool = list(NAMES)
        stream.shuffle(pool)
        order = pool[:complexity]
        clues = _chosen_clues(order, stream)
        birds = sorted(order)
        lines = "\n".join(f"{i}. {sentence(clue)}" for i, clue in enumerate(clues, start=1))
        prompt = (
            f"{complexity} birds sit in a row, in places 1 to {complexity} from left to right. In "
            f"alphabetical order they are: {', '.join(birds)}.\n{lines}\nExactly one order fits. End with "
            'a line of the form "Final answer: <bird>, <bird>, ...", from left to right.'
        )
        metadata: dict[str, object] = {"objects": birds, "clues": [list(clue) for clue in clues]}
        return TaskInstance(prompt, complexity, ", ".join(order), metadata)

    def parse(self, response: str) -> str | None:
        """Read the birds from left to right, such as ``owl, finch, robin``; None with fewer than two."""
        order = find_order(response)
        return ", ".join(order) if len(order) > 1 else None

    def _verify(self, instance: TaskInstance, response: str) -> Findings:
        """Check that each bird is listed once and that every clue holds."""
        objects, clues = _puzzle(instance)
        order = find_order(response)
        missing = sorted(set(objects) - set(order))
        strange = sorted(set(order) - set(objects))
        metadata: dict[str, object] = {}
        message: str | None = None
        if len(order) < 2:
            message = "no order found."
        elif strange:
            message = f"the order has the {_listed(strange)}, not in the row."
        elif missing:
            message = f"the order has {len(order)} of {len(objects)} birds, without the {_listed(missing)}."
        else:
            places = {name: place for place, name in enumerate(order)}
            violated = [i for i, clue in enumerate(clues, start=1) if not holds(clue, places)]
            metadata["violated"] = violated
            if violated:
                clue = sentence(clues[violated[0] - 1])
                message = f"clue {violated[0]} of {len(clues)} does not hold: {clue}"
        return message, metadata

    def wrong_answer(self, instance: TaskInstance, number: int) -> str:
        """Return the order with its last birds rearranged, or with a bird that is not in the row."""
        order = (instance.ground_truth or "").split(", ")
        n_wrong = factorial(len(order)) - 1
        if number >= n_wrong:
            strange = [name for name in NAMES if name not in order]
            return ", ".join([*order, strange[number - n_wrong]])
        rest = number + 1
        for place in range(len(order)):
            which, rest = divmod(rest, factorial(len(order) - 1 - place))
            order.insert(place, order.pop(place + which))
        return ", ".join(order)


def _chosen_clues(order: list[str], stream: Stream) -> list[Clue]:
    """Choose clues, each of them needed, that allow only one order."""
    pool = true_clues(order)
    stream.shuffle(pool)
    few, many = 0, len(pool)
    # More clues exclude more orders, so bisection finds the smallest sufficient number.
    while few < many:
        middle = (few + many) // 2
        if is_unique(order, pool[:middle]):
            many = middle
        else:
            few = middle + 1
    chosen = pool[:many]
    for clue in list(chosen):
        others = [other for other in chosen if other != clue]
        if is_unique(order, others):
            chosen = others
    return chosen


def _puzzle(instance: TaskInstance) -> tuple[list[str], list[Clue]]:
    """Return the objects and the clues of an instance."""
    objects, clues = instance.metadata.get("objects"), instance.metadata.get("clues")
    if isinstance(objects, list) and isinstance(clues, list):
        read = [as_clue(clue) for clue in clues]
        known = [clue for clue in read if clue is not None and clue.first in objects]
        known = [clue for clue in known if clue.second in {"", *objects}]
        if len(known) == len(clues):
            return objects, known
    raise DataError(
        "metadata of the instance has no objects and clues about them. "
        "Hint: is it an instance of LogicalDeduction?"
    )


def _listed(names: list[str]) -> str:
    """Join names for a message."""
    return " and the ".join(names)
