"""No part of an answer is returned as the answer: 50,000 generated statements, and all real completions."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import ttsframe as tts

SMALL = 2_000
FULL = 50_000

STATEMENTS = [
    "The answer is {}.", "The answer is {}", "Answer: {}", "so the total is {}.", "So the total is {}",
    "Therefore, the answer is {}", "We add them.\nThus the result is {}.", "The final answer is: {}\n",
    "**Answer:** {}", "Hence we get {}.", "Final Answer: The final answer is {}. I hope it is correct.",
    "#### {}", "<answer>{}</answer>", "It is clear.\n\nFinal Answer\n\n{}", "The answer is {} because it fits.",
    "The answer is {}, which was to be shown.", "Answer:\n{}\n\nWe are done.", "{}", "Some work.\n\n{}",
    '{{"answer": "{}"}}', "In conclusion, the value equals {}.", "\\text{{Answer: }} {}",
]  # fmt: skip


def digits(rng: random.Random) -> str:
    return str(rng.choice([rng.randint(2, 9), rng.randint(10, 99), rng.randint(100, 99_999)]))


def number(rng: random.Random) -> str:
    makers: list[Callable[[random.Random], str]] = [
        digits, digits,
        lambda r: f".{r.randint(1, 99)}",
        lambda r: f"{r.randint(0, 99)}.{r.randint(1, 999)}",
        lambda r: f"{r.randint(1, 999)},{r.randint(0, 999):03}",
        lambda r: f"{r.randint(1, 9)},{r.randint(0, 999):03},{r.randint(0, 999):03}.{r.randint(10, 99)}",
        lambda r: f"-{r.randint(1, 99)}",
        lambda r: f"{r.randint(1, 9)}/{r.randint(2, 99)}",
        lambda r: f"{r.randint(1, 9)} {r.randint(1, 3)}/{r.randint(4, 9)}",
        lambda r: f"{r.randint(1, 99)}%",
    ]  # fmt: skip
    return rng.choice(makers)(rng)


def value(rng: random.Random) -> str:
    """Return one answer as models write it."""
    n, m, k = digits(rng), digits(rng), rng.randint(2, 9)
    return rng.choice([
        number(rng), number(rng),
        f"{k}√{m}", f"{k}π", f"{k}π/{rng.randint(2, 9)}", f"√{n}", f"{k}√{m}/{rng.randint(2, 9)}",
        f"{n} × 10^{k}", f"{k}.{n}×10^{k}", f"{k}*10^{k}", f"{k} x 10^{k}", f"10⁻{'²³⁴'[k % 3]}", f"{k}e{k}",
        f"{k} : {m}", f"{k}:{m}", f"{n} million", f"${n} billion", f"{k} hundred thousand", f"{k} dozen",
        f"1{k % 2}01₂", f"1{k % 2}1_2", f"{k}{k}_{{{k + 1}}}", f"{n}m²", f"{n}.5 m²" if k < 0 else f"{n}.5m²",
        f"${n}", f"${n}.50", f"\\${n}", f"€{n}", f"Rs. {n}", f"£{n}.{rng.randint(10, 99)}",
        f"{k}!", f"{n}!", f"ln {k}", f"log {n}", f"sin({k})", f"ln({n})", f"{k}ln {m}",
        f"{k}\\sqrt{{{m}}}", f"{k}\\pi", f"\\frac{{{n}}}{{{m}}}", f"{k}\\frac{{1}}{{{k + 1}}}", f"\\sqrt{{{n}}}",
        f"\\frac{{{k}\\pi}}{{{m}}}", f"{k} \\cdot {m}", f"{n} \\times 10^{{{k}}}", f"{k}\\ln {m}",
        f"{k} + {m}i", f"{k} - {m}i", f"-{k} + {m}√{k}", f"{n} + {m}", f"{k} - \\sqrt{{{m}}}", f"{k} ± √{m}",
        f"20{rng.randint(10, 29)}-0{k}-1{k}", f"0{k}/1{k}/2019", f"May {k}, 20{rng.randint(10, 29)}",
        f"1{k} March 20{rng.randint(10, 29)}", f"{k}:{rng.randint(10, 59)} PM", f"{k}:{rng.randint(10, 59)}",
        f"{k} to {n}", f"{k}–{n}", f"{k} out of {m}", f"{k} or more",
        f"{n}, {m}", f"{n}, {m}, {k}", f"{n}, {m}, and {k}", f"{n} and {m}", f"{n} or {m}", f"{k}, {n}/{m}",
        "B, C", "A, B, C", "A and D", "B, C, and D",
        f"x = {n}", f"x = {k}, y = {m}", f"x = {k} and x = {m}", f"x = {k} or x = -{m}", f"{k}x + {m}", f"{k}x^2 - {m}x + 1",
        f"x^{k} + {m}", f"{k}n(n+{k})", f"({k}, {m})", f"[{k}, {n})", f"(-∞, {k}]", f"{{{k}, {m}, {n}}}", f"x > {k}",
        f"{k} < x < {n}", f"x ≤ {n}", f"{k}^{{{m}}}", f"{k}^{k}", f"{k}^({m}+1)", f"{k}²", f"{k}½", f"{n}°", f"{n}°C",
        f"{n}th", f"{n}km/h", f"{n}-{k}", f"{n} percent", f"{n} \\%", f"{k} hours {m} minutes", f"{k} feet {m} inches",
        f"{n} dollars and {m} cents", f"{k} apples and {m} oranges", f"0.{k}{k}{k}...", f"0.\\overline{{{k}}}",
        f"$\\frac{{{k}}}{{{m}}}$", f"$x = {n}$", f"${n}$ and ${m}$", f"$({k}, {m})$", f"\\({n}\\)", f"\\[ {k}x \\]",
        f"$ {n} \\text{{ cm}} $", f"${k}$ million", f"${n}\\%$", f"**{n}**", f"**{k}√{m}**", f"**${n}$**", f"${k}\\pi$",
        "does not exist", "no solution", "3万", f"{n}万", f"{k}小时{m}分钟", f"2019年{k}月1{k}日", f"|x| < {k}", f"{k} in {k + 1}" if k < 0 else f"1 in {n}",
        f"{n} 000 000" if len(n) < 4 else n, f"{k}^\\circ", f"{n}^\\circ", f"{k}{{,}}000", "\\infty", "-\\infty", f"f(x) = {k}x",
    ])  # fmt: skip


def plain(text: str) -> str:
    """Forget delimiters, spaces, and how the elements of a list are joined."""
    text = re.sub(r"\\[()\[\]]|\*\*|(?<!\\)\$(?=\d+ |\d+$|[^$]*\$)", "", text)
    text = re.sub(r",? (?:and|or) |、", ",", text)
    return re.sub(r"[\s$*]|\\text\{[^{}]*\}|\.$", "", text)


def statements(seed: int, count: int) -> tuple[list[str], list[str]]:
    rng = random.Random(seed)
    values = [value(rng) for _ in range(count)]
    return values, [rng.choice(STATEMENTS).format(text) for text in values]


def cut(values: list[str], texts: list[str]) -> tuple[list[tuple[str, str, str]], int]:
    """Return the answers that are parts of what was stated, and the number of answers."""
    frame = pl.DataFrame({"text": texts, "value": values}).with_columns(
        answer=tts.extract_answer("text")
    )
    found = frame.filter(pl.col("answer").is_not_null())
    wrong = [
        (text, stated, answer)
        for text, stated, answer in found.select("text", "value", "answer").iter_rows()
        if plain(answer) != plain(stated) and plain(answer.replace(".", ",")) != plain(stated)
    ]
    return wrong, found.height


def test_a_statement_gives_its_answer_whole_or_not_at_all() -> None:
    wrong, n_found = cut(*statements(1, SMALL))
    assert wrong == []
    assert n_found >= 0.97 * SMALL


@pytest.mark.slow
def test_fifty_thousand_statements_give_their_answers_whole_or_not_at_all() -> None:
    wrong, n_found = cut(*statements(2, FULL))
    assert wrong == []
    assert n_found >= 0.97 * FULL


# what would go on with a number, product, date or list on either side of an answer out of prose
GOES_ON_AFTER = re.compile(
    r"[A-Za-z0-9√π^_!%°²³⁰-⁹₀-₉½¼¾]|[.,:/]\d|\\(?:pi|sqrt|cdot|times|frac|dfrac)\b"
    r"| ?[×·÷^=±+/] ?[\d(\\]| [-*] [\d(]| ?(?:million|billion|hundred|thousand|percent|dozen)\b"
    r"|,? (?:and|or) [\d$]+(?:[.,;]|$)|, \d+(?:[.,;]|$)"
)
GOES_ON_BEFORE = re.compile(r"(?:[A-Za-z0-9√π^_\\]|\d[.,:/]|\d ?[-+×·÷*/^]|[+×·÷^√±] ?)$")
LOOSE = ("phrase", "conclusion", "last_line", "hash")
"""Rules that read prose, where nothing encloses an answer."""


def real_texts(shared_data: Path) -> list[str]:
    """Return completions of real runs, with and without their boxes."""
    paths = [
        *(shared_data / "search_and_learn").glob("*.jsonl"),
        shared_data / "qwen_math" / "math_cot_50.jsonl",
    ]
    texts = pl.concat([tts.read_trajectories(path).select("completion") for path in paths])[
        "completion"
    ]
    steps = pl.read_ndjson(shared_data / "gsm8k" / "example_model_solutions.jsonl")
    solutions = pl.concat([steps[name].struct.field("solution") for name in steps.columns[2:]])
    unboxed = texts.drop_nulls().str.replace_all(r"\\boxed\{([^{}]*)\}", "${1}")
    return pl.concat([texts, unboxed, solutions]).drop_nulls().unique(maintain_order=True).to_list()


def stands_alone(text: str, found: tts.answers.ExtractionExplanation) -> bool:
    """Tell whether nothing goes on with the answer, at one place at least of what was read."""
    assert found.answer is not None
    for match in re.finditer(re.escape(found.answer), found.excerpt or text):
        read = match.string
        before = read[max(0, match.start() - 4) : match.start()]
        if re.search(r"(?:[$(\[*`{=]|: )\s*$", before):
            before = ""
        if not GOES_ON_AFTER.match(read, match.end()) and not GOES_ON_BEFORE.search(before):
            return True
    return False


@pytest.mark.slow
def test_the_text_around_real_answers_does_not_go_on_with_them(shared_data: Path) -> None:
    texts = real_texts(shared_data)
    assert len(texts) > 5_000
    frame = pl.DataFrame({"text": texts}).with_columns(
        rule=tts.answers.extraction_rule("text").cast(pl.String)
    )
    cut = []
    prose = frame.filter(pl.col("rule").is_in(LOOSE))["text"]
    for text in prose.sample(min(2_000, len(prose)), seed=4):
        found = tts.answers.explain_extraction(text)
        if found.answer is not None and found.start is not None and not stands_alone(text, found):
            cut.append((text[max(0, found.start - 30) : found.start], found.answer))
    assert cut == []


@pytest.mark.parametrize("text", ["12\x0034", "\x00\x062y-1", "x = \x0012"])
def test_null_characters_cut_no_answer_of_an_ending(text: str) -> None:
    assert tts.answers.explain_extraction(text).answer == text
    assert pl.DataFrame({"t": [text]}).select(tts.extract_answer("t")).item() == text


@pytest.mark.parametrize(
    "text",
    [
        "The answer is 1/",
        "The answer is 7 /\n",
        "The answer is 2^",
        "Final answer: 2 x 10^",
        "Answer: (6 / 2) * (6 - 5) =",
        "So the probability is (5/6",
        "Steps:\n36 / ",
        "#### 2/",
        "| Answer |\n|---|\n| 42 |",
    ],
)
def test_a_text_that_breaks_off_or_ends_on_a_table_has_no_answer(text: str) -> None:
    assert tts.answers.explain_extraction(text).answer is None


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The answer is |x|^2|x+1|.", "|x|^2|x+1|"),
        ("The answer is 152 / 30 = 5 30-minute sessions.", "152 / 30 = 5"),
        ("The answer is 12 30-day months.", "12"),
        ("The answer is 2 1/2.", "2 1/2"),
        ("The answer is C#", "C#"),
        ("Answer: C++", "C++"),
        ("**Result:** `128`", "128"),
        ("Answer ≈ 3.14", "3.14"),
        ("所以选 B。", "B"),
    ],
)
def test_what_follows_a_value_is_read_with_it_or_left_out(text: str, answer: str) -> None:
    assert tts.answers.explain_extraction(text).answer == answer
