"""Logical deduction: one order each, no clue too many, orders in many notations."""

from __future__ import annotations

from itertools import permutations
from math import factorial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ttsframe.evaluator import LogicalDeduction, TaskInstance
from ttsframe.evaluator.tasks._clues import Clue, as_clue, holds, is_unique, sentence, true_clues
from ttsframe.evaluator.tasks._orders import NAMES

TASK = LogicalDeduction(seed=9)
ORDER = "owl, finch, robin"


def clues_of(instance: TaskInstance) -> list[Clue]:
    listed = instance.metadata["clues"]
    assert isinstance(listed, list)
    return [clue for each in listed if (clue := as_clue(each)) is not None]


def is_so(clue: Clue, order: tuple[str, ...]) -> bool:
    """Say what a clue means, by the row itself."""
    kind, first, second, number = clue
    if kind == "not_at":
        return order[number - 1] != first
    inside = order[
        min(order.index(first), order.index(second)) + 1 : max(
            order.index(first), order.index(second)
        )
    ]
    if kind == "left_of":
        return second in order[order.index(first) :]
    if kind == "next_left_of":
        return f"{first} {second}" in " ".join(order)
    return len(inside) == number


def solutions(objects: list[str], clues: list[Clue]) -> list[tuple[str, ...]]:
    return [order for order in permutations(objects) if all(is_so(clue, order) for clue in clues)]


@pytest.mark.parametrize("n", range(2, 8))
def test_exactly_one_order_satisfies_the_clues_and_each_is_needed(n: int) -> None:
    for instance in TASK.generate_batch((n, n), 12 if n < 7 else 3):
        clues = clues_of(instance)
        objects = instance.metadata["objects"]
        assert isinstance(objects, list)
        assert [", ".join(order) for order in solutions(objects, clues)] == [instance.ground_truth]
        for clue in clues:
            assert len(solutions(objects, [each for each in clues if each != clue])) > 1
        for i, clue in enumerate(clues, start=1):
            assert f"\n{i}. {sentence(clue)}\n" in instance.prompt


names5 = list(NAMES[:5])
any_clue = st.one_of(
    st.builds(
        lambda kind, pair, number: Clue(kind, pair[0], pair[1], number if kind == "apart" else 0),
        st.sampled_from(["left_of", "next_left_of", "adjacent", "apart"]),
        st.permutations(names5).map(lambda order: order[:2]),
        st.integers(1, 3),
    ),
    st.builds(lambda name, place: Clue("not_at", name, "", place), st.sampled_from(names5), st.integers(1, 5)),
)  # fmt: skip


@given(clues=st.lists(any_clue, max_size=9))
def test_the_solver_is_right_by_brute_force(clues: list[Clue]) -> None:
    assert is_unique(names5, clues) == (len(solutions(names5, clues)) == 1)
    for order in list(permutations(names5))[:10]:
        places = {name: place for place, name in enumerate(order)}
        assert [holds(clue, places) for clue in clues] == [
            # "adjacent" has number 0: none between
            is_so(clue, order)
            for clue in clues
        ]


@given(order=st.permutations(names5), drop=st.integers(0, 30))
def test_the_solver_finds_the_order_that_made_the_clues(order: list[str], drop: int) -> None:
    clues = true_clues(order)
    assert all(is_so(clue, tuple(order)) for clue in clues)
    assert len(set(clues)) == len(clues)
    assert is_unique(order, clues)
    some = clues[:drop]
    assert is_unique(order, some) == (solutions(order, some) == [tuple(order)])


def test_sentences_are_grammatical() -> None:
    assert [sentence(Clue("apart", "owl", "swan", number)) for number in (1, 2)] == [
        "Exactly 1 bird stands between the owl and the swan.",
        "Exactly 2 birds stand between the owl and the swan.",
    ]
    assert sentence(Clue("not_at", "owl", "", 3)) == "The owl is not in place 3."
    assert (
        sentence(Clue("left_of", "owl", "swan", 0))
        == "The owl is somewhere to the left of the swan."
    )


NOTATIONS = {
    "commas": "Final answer: owl, finch, robin",
    "alone": "owl, finch, robin",
    "greater": "Owl > Finch > Robin",
    "arrows": "owl -> finch → robin",
    "bars": "| owl | finch | robin |",
    "JSON": '["owl", "finch", "robin"]',
    "lines": "1. owl\n2. finch\n3. robin",
    "lines out of order": "3. robin\n1. owl\n2. finch",
    "places": "Place 1: the owl\nPlace 2: the finch\nPlace 3: the robin",
    "JSON by place": '{"1": "owl", "3": "robin", "2": "finch"}',
    "JSON by name": '{"owl": 1, "robin": 3, "finch": 2}',
    "ordinals": "The owl is first, the robin third, and the finch second.",
    "ordinals before": "1st: owl, 3rd: robin, 2nd: finch",
    "prose": "The owl sits on the left, then comes the finch, and the robin is at the end.",
    "right to left": "From right to left: robin, finch, owl.",
    "right to left after the marker": "Final order (right to left): robin, finch, owl",
    "left to right": "Not right to left, but left to right: owl, finch, robin",
    "LaTeX": r"\boxed{\text{owl}, \text{finch}, \text{robin}}",
    "Markdown": "**Final answer:** **owl**, *finch*, `robin`.",
    "remarks after": "Final answer: owl, finch, robin. So the owl is first.",
    "reasoning before": "robin, owl, finch? Clue 2 says no.\nFinal answer: owl, finch, robin",
    "a marker in the middle": "Answer: robin, owl. Hence the order is owl, finch, robin. Check: the robin is right of the owl.",
    "thinking": "<think>The order is robin, owl, finch.</think>owl, finch, robin",
    "####": "robin, finch, owl #### owl, finch, robin",
    "equal lists": "Final answer: owl, finch, robin; robin, finch, owl",
}  # fmt: skip


@pytest.mark.parametrize("response", NOTATIONS.values(), ids=NOTATIONS)
def test_an_order_is_read(response: str) -> None:
    assert TASK.parse(response) == ORDER


@pytest.mark.parametrize(
    "response",
    [
        "", "I do not know.", "Final answer:", "owl", "owls, finches, robins", "о\u200bwl, fіnch", "A, B, C", "first, second, third", "1, 2, 3", "\x00", "\ud800",
        f"owl, finch, robin. {'This is why I cannot say in which order they sit. ' * 3}",
    ],
)  # fmt: skip
def test_what_is_no_order_is_none(response: str) -> None:
    assert TASK.parse(response) is None
    result = TASK.verify_solution(TASK.generate_instance(3), response)
    assert result.error_message == "no order found."


PUZZLE = TaskInstance(
    "", 3, None,
    {"objects": ["finch", "owl", "robin"], "clues": [["next_left_of", "owl", "finch", 0], ["not_at", "robin", "", 1]]},
)  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "message", "violated"),
    [
        ("owl, finch, robin", None, []),
        ("robin, owl, finch", "clue 2 of 2 does not hold: The robin is not in place 1.", [2]),
        ("robin, finch, owl", "clue 1 of 2 does not hold: The owl is immediately to the left of the finch.", [1, 2]),
        ("owl, finch", "the order has 2 of 3 birds, without the robin.", None),
        ("owl, swan, finch, robin", "the order has the swan, not in the row.", None),
        ("owl, finch, owl, robin", "the order has 2 of 3 birds, without the robin.", None),
        ("owl", "no order found.", None),
    ],
)  # fmt: skip
def test_clues_are_checked_one_by_one(
    answer: str, message: str | None, violated: list[int] | None
) -> None:
    result = TASK.verify_solution(PUZZLE, f"Final answer: {answer}")
    assert (result.error_message, result.metadata.get("violated")) == (message, violated)
    assert result.is_correct == (message is None)


def test_the_clues_decide_and_not_the_stored_order() -> None:
    instance = TASK.generate_instance(5)
    truth = str(instance.ground_truth)
    instance.ground_truth = "owl"
    assert TASK.verify_solution(instance, f"Final answer: {truth}").is_correct


def test_verdicts_over_all_orders_of_an_instance() -> None:
    for instance in TASK.generate_batch((4, 5), 3):
        objects = instance.metadata["objects"]
        assert isinstance(objects, list)
        right = [
            order
            for order in permutations(objects)
            if TASK.verify_solution(instance, "Order: " + " > ".join(order)).is_correct
        ]
        assert [", ".join(order) for order in right] == [instance.ground_truth]


@pytest.mark.parametrize("n", [2, 3, 4])
def test_wrong_answers_go_through_all_other_orders_first(n: int) -> None:
    instance = TASK.generate_instance(n)
    wrong = {TASK.wrong_answer(instance, number) for number in range(factorial(n) - 1)}
    everything = {
        ", ".join(order) for order in permutations(str(instance.ground_truth).split(", "))
    }
    assert wrong == everything - {instance.ground_truth}


def test_the_largest_puzzles_are_made_and_judged() -> None:
    for n in (12, len(NAMES)):
        instance = TASK.generate_instance(n)
        order = str(instance.ground_truth).split(", ")
        assert sorted(order) == instance.metadata["objects"]
        assert is_unique(order, clues_of(instance))
        assert TASK.verify_solution(instance, ", ".join(order)).is_correct


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"objects": ["owl", "finch"], "clues": "none"},
        {"objects": ["owl", "finch"], "clues": [["left_of", "owl", "swan", 0]]},
        {"objects": ["owl", "finch"], "clues": [["above", "owl", "finch", 0]]},
        {"objects": ["owl", "finch"], "clues": [["left_of", "owl", "finch"]]},
        {"objects": ["owl", "finch"], "clues": [["left_of", 1, 2, 0]]},
    ],
)
def test_damaged_metadata_is_refused(metadata: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="no objects and clues"):
        TASK.verify_solution(TaskInstance("", 2, None, metadata), "owl, finch")
