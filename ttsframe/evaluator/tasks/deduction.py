"""Logical deduction: the one order of birds in a row that clues leave."""

from __future__ import annotations

from math import factorial
from typing import ClassVar

from ttsframe.errors import DataError
from ttsframe.evaluator._stream import Stream
from ttsframe.evaluator.tasks._clues import Clue, as_clue, holds, is_unique, sentence, true_clues
from ttsframe.evaluator.tasks._orders import NAMES, find_order
from ttsframe.evaluator.tasks.task import SeededTask, TaskInstance, TaskResult

__all__ = ["LogicalDeduction"]


class LogicalDeduction(SeededTask):
    r"""Put `complexity` birds that sit in a row into the one order that the clues leave.

    Every clue is needed: without any one of them a second order would do. The number of orders to
    choose from grows as the factorial of the complexity.

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
    another, immediately to the left of it, next to it, that so many stand between the two, or that a
    bird is not in a place. True clues are added in random order until an exact solver finds only one
    order, then those that are not needed are taken out again.

    An answer is a list of names within 60 characters of each other, none twice: ``owl, finch,
    robin``, ``owl > finch > robin``, numbered lines, JSON lists and objects. Where every name has a
    place beside it (``2. finch``, ``the finch is second``, ``{"finch": 2}``), the places decide;
    "right to left" just before a list turns it round. What counts is the longest list after the last
    marker (``Final answer``, ``Answer:``, ``Order:``, ``\boxed``, ``####``, ``</think>``) that has a
    name after it, the first of equal ones; without a marker the list that ends the response, with at
    most 60 characters after it, because any other may repeat the clues.

    An answer is verified against the clues, not against the stored order.

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
        """Draw an order and clues that leave no other."""
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
        """Read the order.

        Parameters
        ----------
        response
            What the model wrote.

        Returns
        -------
        str or None
            The birds from left to right, such as ``owl, finch, robin``; None where fewer than two
            are listed. A list that lacks birds is an answer, only not a right one.
        """
        order = find_order(response)
        return ", ".join(order) if len(order) > 1 else None

    def verify_solution(self, instance: TaskInstance, response: str) -> TaskResult:
        """Check that each bird is listed once and that every clue holds.

        Parameters
        ----------
        instance
            An instance of this task.
        response
            What the model wrote.

        Returns
        -------
        TaskResult
            Whether it is the order; `error_message` names the first clue that does not hold.
            `metadata` holds `violated`, the numbers of all such clues, where each bird is listed.

        Raises
        ------
        DataError
            When the instance is of another task.
        """
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
        return TaskResult(response, message is None, instance.complexity, message, metadata)

    def wrong_answer(self, instance: TaskInstance, number: int) -> str:
        """Return one of the wrong answers that a simulation gives.

        Parameters
        ----------
        instance
            An instance of this task.
        number
            Which one, from 0.

        Returns
        -------
        str
            The order with its last birds rearranged; past the number of orders, the right one with
            a bird that is not in the row.
        """
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
    """Choose clues, each needed, that leave one order."""
    pool = true_clues(order)
    stream.shuffle(pool)
    few, many = 0, len(pool)
    # Clues only ever exclude orders, so the first number that is enough is found by halving.
    while few < many:
        middle = (few + many) // 2
        if is_unique(order, pool[:middle]):
            many = middle
        else:
            few = middle + 1
    chosen = pool[:many]
    for clue in list(chosen):
        others = [each for each in chosen if each != clue]
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
    """Join names."""
    return " and the ".join(names)
