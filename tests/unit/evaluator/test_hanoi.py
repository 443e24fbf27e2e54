"""The Tower of Hanoi: notations, which list counts, and every way to be wrong."""

from __future__ import annotations

from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ttsframe.evaluator import TaskInstance, TowerOfHanoi
from ttsframe.evaluator.tasks import _moves
from ttsframe.evaluator.tasks._moves import MOST_MOVES, Move, with_discs

TASK = TowerOfHanoi()
TRUTH = "1:A>B 2:A>C 1:B>C"


def puzzle(n_discs: int, start: str = "A", goal: str = "C") -> TaskInstance:
    return TaskInstance("", n_discs, None, {"start": start, "goal": goal})


NOTATIONS = {
    "words": "Move disk 1 from A to B\nMove disk 2 from A to C\nMove disk 1 from B to C",
    "in capitals": "MOVE DISK 1 FROM A TO B. MOVE DISC 2 FROM A TO C. MOVE DISK 1 FROM B TO C.",
    "with remarks": "1. Move disk 1 (the smallest) from peg A onto peg B.\n2. Move disk 2 from the rod A to rod C.\n"
    "3. Move disk #1 from tower b over to tower c.",
    "without move": "Disk 1 from A to B, disk 2 from A to C, disk 1 from B to C",
    "top disk": "Move the top disk from A to B, move from A to C, move the smallest disk from B to C",
    "to without from": "Disk 1: A to B; Disk 2: A to C; Disk 1: B to C",
    "tuples": "(1, A, B), (2, A, C), (1, B, C)",
    "Python": "moves = [(1, 'A', 'B'), (2, 'A', 'C'), (1, 'B', 'C')]",
    "pairs": "[('A', 'B'), ('A', 'C'), ('B', 'C')]",
    "JSON": "[[1, 0, 1], [2, 0, 2], [1, 1, 2]]",
    "JSON from 1": "[[1,1,2],[2,1,3],[1,2,3]]",
    "JSON with names": '[[1, "A", "B"], [2, "A", "C"], [1, "B", "C"]]',
    "JSON objects": '[{"disk": 1, "from": "A", "to": "B"}, {"disk": 2, "from": "A", "to": "C"}, {"disk": 1, "from": "B", "to": "C"}]',
    "arrows": "A->B, A->C, B->C",
    "long arrows": "A --> B\nA ==> C\nB => C",
    "Unicode arrows": "A → B\nA ⟶ C\nB ⇒ C",
    "colons": "1: A -> B\n2: A -> C\n1: B -> C",
    "numbered arrows": "1. A->B\n2. A->C\n3. B->C",
    "numbered from 0": "0: A->B\n1: A->C\n2: B->C",
    "numbered in brackets": "1) A->B 2) A->C 3) B->C",
    "numbers and discs": "1. disk 1: A -> B\n2. disk 2: A -> C\n3. disk 1: B -> C",
    "steps": "Step 1: A -> B. Step 2: A -> C. Step 3: B -> C.",
    "short": "D1 A->B D2 A->C D1 B->C",
    "numbers": "0 -> 1, 0 -> 2, 1 -> 2",
    "numbers from 1": "1 -> 2, 1 -> 3, 2 -> 3",
    "discs and numbers": "disk 1: 0 -> 1, disk 2: 0 -> 2, disk 1: 1 -> 2",
    "LaTeX": r"$1: A \to B$, $2: A \rightarrow C$, $1: B \longrightarrow C$",
    "LaTeX text": r"\[\boxed{\text{A} \to \text{B},\ \mathrm{A} \Rightarrow \mathrm{C},\ \textbf{B} \to \textbf{C}}\]",
    "Markdown": "1. Move **disk 1** from **A** to **B**\n2. Move `disk 2` from `A` to `C`\n3. Move _disk 1_ from _B_ to _C_",
    "table": "| move | disk | from | to |\n|--|--|--|--|\n| 1 | 1 | A | B |\n| 2 | 2 | A | C |\n| 3 | 1 | B | C |",
    "short table": "| 1 | A | B |\n| 2 | A | C |\n| 1 | B | C |",
    "canonical": TRUTH,
}  # fmt: skip


@pytest.mark.parametrize("response", NOTATIONS.values(), ids=NOTATIONS)
def test_a_notation_is_read(response: str) -> None:
    assert TASK.parse(response) == TRUTH
    assert TASK.verify_solution(puzzle(2), response).is_correct


COUNTING = {
    "after a marker": "A->C? Then A->B, no: C->A. Final answer:\nA → B\nA → C\nB → C\n",
    "the last marker": f"Final answer: A->C\nWait. Final answer: {TRUTH}",
    "a marker without moves after it": f"{TRUTH}\nThis is the final answer. Solution: done.",
    "after thinking": f"<think>Final answer: A->C, A->B. Hmm.</think>\n{TRUTH}",
    "a box": rf"A->C, A->B, so \boxed{{{TRUTH}}}",
    "after ####": f"A->C A->B\n#### {TRUTH}",
    "headings of steps": "#### Step 1\nMove disk 1 from A to B\n#### Step 2\nMove disk 2 from A to C\n#### 3. Step\nMove disk 1 from B to C",
    "the first list after the marker": f"moves = [[1,0,1],[2,0,2],[1,1,2]]\n{'So it is done. ' * 40}[[1,0,2]]",
    "the last list": f"Try A->C, A->B. {'That does not work, for disk 1 is in the way. ' * 10}\n{TRUTH}",
    "remarks in another notation": "Move disk 1 from A to B (A -> B).\nMove disk 2 from A to C (A -> C).\nMove disk 1 from B to C. "
    "Goal: A -> C!",
    "all discs": f"{NOTATIONS['words']}\nAll 2 disks have been moved from A to C, to move the tower from A to C.",
    "a state at the end": "moves = [[1,0,1],[2,0,2],[1,1,2]]\nfinal state: [[], [], [3, 2, 1]]",
    "states between": "Move disk 1 from A to B. [[3, 2, 0], [], []]\nMove disk 2 from A to C. [[], [3, 2, 1], []]\nMove disk 1 from B to C.",
    "the longest notation": "Final answer: to bring A -> C,\n" + NOTATIONS["JSON"],
    "comments": "moves = [\n[1, 0, 1], # A->B? no words\n[2, 0, 2],\n[1, 1, 2]]",
}  # fmt: skip


@pytest.mark.parametrize("response", COUNTING.values(), ids=COUNTING)
def test_the_list_that_answers_is_found(response: str) -> None:
    assert TASK.parse(response) == TRUTH


@pytest.mark.parametrize(
    "response",
    [
        "", "I do not know.", "A, B, C", "from A to D", "А->В", "Ａ->Ｂ", "BA->CAB", "a to b", "move all disks from A to C", "[2, 1]", "3, 2, 1",
        "[1, 0, 3], [1, 3, 0]", "disk 1 -> 3", "Final answer:", "\x00", "\ud800->\udfff", "A-\u200b>C",
    ],
)  # fmt: skip
def test_what_is_no_move_is_none(response: str) -> None:
    assert TASK.parse(response) is None
    result = TASK.verify_solution(puzzle(2), response)
    assert result.error_message == "no moves found."
    assert result.metadata == {"n_moves": 0, "n_legal": 0}


@pytest.mark.parametrize(
    ("moves", "message", "n_legal"),
    [
        ("(2, A, C)", "move 1: disc 2 from A to C, but disc 1 lies on it.", 0),
        ("(1, A, C) (1, C, B) (2, A, B)", "move 3: disc 2 from A to B, but disc 1 lies there.", 2),
        ("(4, A, C)", "move 1: disc 4 from A to C, but the discs are 1 to 3.", 0),
        ("(9999, A, C)", "move 1: disc 9999 from A to C, but the discs are 1 to 3.", 0),
        ("(1, B, C)", "move 1: disc 1 from B to C, but it lies on peg A.", 0),
        ("A->C, B->C", "move 2: from B to C, but peg B is empty.", 1),
        ("A->C, A->C", "move 2: from A to C, but disc 1 lies there.", 1),
        ("(1, A, A)", "move 1: disc 1 from A to A, but these are the same peg.", 0),
        ("A->C", "after 1 move disc 3 is on peg A, not C.", 1),
        ("A->C, C->B", "after 2 moves disc 3 is on peg A, not C.", 2),
        ("A->C, A->B, C->B, A->C, B->A, B->C", "after 6 moves disc 1 is on peg A, not C.", 6),
        ("A->B " * 29, "29 moves, more than 28, which is 4 times the optimum.", 0),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_precisely(moves: str, message: str, n_legal: int) -> None:
    result = TASK.verify_solution(puzzle(3), moves)
    assert (result.error_message, result.metadata["n_legal"]) == (message, n_legal)
    assert not result.is_correct


def test_a_detour_is_right_unless_the_shortest_solution_is_asked_for() -> None:
    detour = "A->B, B->C, C->B, A->C, B->C"
    assert TASK.verify_solution(puzzle(2), detour).is_correct
    optimal = TowerOfHanoi(optimal=True)
    result = optimal.verify_solution(puzzle(2), detour)
    assert result.error_message == "5 moves, but 3 are enough."
    assert optimal.verify_solution(puzzle(2), TRUTH).is_correct
    assert "as few moves as possible" in optimal.generate_instance(3).prompt
    back_and_forth = TRUTH + " C->B B->C" * 4
    assert TASK.verify_solution(puzzle(2), back_and_forth).is_correct
    assert not TASK.verify_solution(puzzle(2), back_and_forth + " C->B B->C").is_correct


def test_the_pegs_come_in_turn() -> None:
    batch = TowerOfHanoi(seed=4).generate_batch((3, 3), 12)
    pairs = [(each.metadata["start"], each.metadata["goal"]) for each in batch]
    assert set(pairs[:6]) == set(permutations("ABC", 2))
    assert pairs[6:] == pairs[:6]


@pytest.mark.parametrize("n_discs", [1, 2, 3, 7, 12])
def test_the_ground_truth_has_the_optimal_length(n_discs: int) -> None:
    instance = TASK.generate_instance(n_discs)
    assert len(str(instance.ground_truth).split()) == 2**n_discs - 1
    assert instance.metadata["optimal_length"] == 2**n_discs - 1
    assert (
        TowerOfHanoi(optimal=True).verify_solution(instance, str(instance.ground_truth)).is_correct
    )


def test_no_shorter_or_other_sequence_is_right() -> None:
    # All sequences of up to three moves between pegs: exactly one solves two discs.
    steps = list(product("ABC", repeat=2))
    for n_moves in (1, 2, 3):
        right = [
            moves
            for moves in product(steps, repeat=n_moves)
            if TASK.verify_solution(
                puzzle(2), " ".join("->".join(move) for move in moves)
            ).is_correct
        ]
        assert right == ([(("A", "B"), ("A", "C"), ("B", "C"))] if n_moves == 3 else [])


def simulate(
    n_discs: int, start: int, moves: list[tuple[int | None, int, int]]
) -> list[set[int]] | None:
    """Play moves on sets of discs; None where one is illegal."""
    pegs: list[set[int]] = [set(), set(), set()]
    pegs[start] = set(range(1, n_discs + 1))
    for disc, source, target in moves:
        if not pegs[source]:
            return None
        top = min(pegs[source])
        if disc not in {None, top} or source == target or min(pegs[target], default=99) < top:
            return None
        pegs[source].remove(top)
        pegs[target].add(top)
    return pegs


moves_strategy = st.lists(
    st.tuples(st.one_of(st.none(), st.integers(1, 3)), st.integers(0, 2), st.integers(0, 2)),
    min_size=1,
    max_size=12,
)


@given(moves=moves_strategy, n_discs=st.integers(1, 4))
def test_verdicts_are_those_of_a_plain_simulation(
    moves: list[tuple[int | None, int, int]], n_discs: int
) -> None:
    # One notation: tuples where every disc is named, arrows where none is.
    if len({disc is None for disc, _, _ in moves}) > 1:
        moves = [(None, source, target) for _, source, target in moves]
    text = "; ".join(
        f"{'ABC'[s]}->{'ABC'[t]}" if d is None else f"({d}, {'ABC'[s]}, {'ABC'[t]})"
        for d, s, t in moves
    )
    # Numbers that run from the first move to the last number the moves.
    if len(moves) > 1 and [disc for disc, _, _ in moves] == list(range(1, len(moves) + 1)):
        moves = [(None, source, target) for _, source, target in moves]
    pegs = simulate(n_discs, 0, moves)
    result = TASK.verify_solution(puzzle(n_discs), text)
    solved = pegs is not None and len(pegs[2]) == n_discs and len(moves) <= 4 * (2**n_discs - 1)
    assert result.is_correct == solved


@given(moves=moves_strategy, is_named=st.booleans())
def test_what_is_parsed_parses_as_itself_and_is_judged_alike(
    moves: list[tuple[int | None, int, int]], is_named: bool
) -> None:
    text = "\n".join(
        f"disk {d or 3}: {'ABC'[s]} -> {'ABC'[t]}" if is_named else f"{'ABC'[s]} -> {'ABC'[t]}"
        for d, s, t in moves
    )
    answer = TASK.parse(text)
    assert answer is not None
    assert TASK.parse(answer) == answer
    for n_discs, start, goal in ((2, "A", "C"), (1, "B", "A"), (3, "A", "B")):
        instance = puzzle(n_discs, start, goal)
        verdicts = {TASK.verify_solution(instance, each).is_correct for each in (text, answer)}
        assert len(verdicts) == 1


@given(st.integers(1, 6), st.integers(0, 5), st.data())
def test_naming_the_discs_or_not_gives_one_answer(n: int, index: int, data: st.DataObject) -> None:
    instance = TowerOfHanoi(seed=8).instance_at(n, index)
    named = str(instance.ground_truth).split()
    kept = data.draw(st.lists(st.booleans(), min_size=len(named), max_size=len(named)))
    written = " ".join(
        move if keep else move.partition(":")[2] for move, keep in zip(named, kept, strict=True)
    )
    assert TASK.parse(written) == instance.ground_truth


def test_discs_are_named_as_far_as_moves_are_legal() -> None:
    assert with_discs([]) == []
    moves = [Move(None, 0, 1), Move(None, 0, 2), Move(None, 0, 2), Move(None, 1, 0)]
    assert [move.disc for move in with_discs(moves)] == [1, 2, None, None]


def test_remarks_between_moves_are_read_in_linear_time() -> None:
    # 2^190 ways to split the remark: a search among them would never end.
    remarks = "".join(f"[1, 0, 2]{'# ' * 190}\nthe next " for _ in range(50))
    assert TASK.parse(remarks) == "1:A>C"


def test_the_longest_list_that_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_MOVES == 4 * (2**16 - 1)
    monkeypatch.setattr(_moves, "MOST_MOVES", 100)
    assert TASK.parse("A>B B>A " * 50) is not None
    too_long = "A>B B>A " * 50 + "A>B"
    assert TASK.parse(too_long) is None
    result = TASK.verify_solution(puzzle(16), too_long)
    assert result.error_message == "101 moves, more than 262140, which is 4 times the optimum."
    assert not result.is_correct
