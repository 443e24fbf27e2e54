"""Final answers out of completions."""

from __future__ import annotations

import json
import random
from pathlib import Path

import polars as pl
import pytest

import ttsframe as tts

STYLES = ("auto", "boxed", "final_answer", "hash", "last_number")


def extract(*texts: str | None, style: str = "auto") -> list[str | None]:
    frame = pl.DataFrame({"completion": list(texts)}, schema={"completion": pl.String})
    return frame.select(tts.extract_answer("completion", style=style))["completion"].to_list()


def last_box_by_counting(text: str) -> str | None:
    """Read the last box with a brace counter: slow, obvious, not the code under test."""
    start = text.rfind("\\boxed{")
    if start < 0:
        return None
    content, depth, position = "", 1, start + len("\\boxed{")
    while position < len(text):
        character = text[position]
        if character == "\\" and position + 1 < len(text):
            content += text[position : position + 2]
            position += 2
            continue
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth == 0:
            return content.strip() or None
        content += character
        position += 1
    return None


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"so $x = \boxed{\frac{1}{2}}$.", r"\frac{1}{2}"),
        (r"\boxed{1} no, wait. It is \boxed{2}.", "2"),
        (r"\boxed{\left\{ x \mid x > 0 \right\}}", r"\left\{ x \mid x > 0 \right\}"),
        (
            "\\boxed{\n\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}\n}",
            "\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}",
        ),
        (r"\boxed {7}", "7"),
        (r"\fbox{7}", "7"),
        (r"\boxed 5", "5"),
        (r"The answer is $\boxed 4.$", "4"),
        (r"\boxed\text{(A)}", r"\text{(A)}"),
        (r"\boxed\frac{1}{2}.", r"\frac{1}{2}"),
        (r"\boxed{\boxed{3}}", "3"),
        (r"$\boxed{" + "{" * 20 + "9" + "}" * 20 + "}$", "{" * 20 + "9" + "}" * 20),
        (r"\\boxed{\\frac{1}{2}}", r"\frac{1}{2}"),
        (r"$\boxed{42$. That is all.", "42"),
        (r"$\boxed{2}$ and $\boxed{3}$", "2, 3"),
        (r"$$\boxed{2}, \boxed{3}, \boxed{5}$$", "2, 3, 5"),
        (r"\boxed{k = 45} \quad \text{and} \quad \boxed{n = 2}", "k = 45, n = 2"),
        (r"\(y_1 = \boxed{2x} \) and \( y_2 = \boxed{3x}\)", "y_{1} = 2x, y_{2} = 3x"),
        (r"\boxed{1} thus, but not or \boxed{2}, and \boxed{3}", "2, 3"),
        (r"We get \boxed{4}. Checking again, and so the total is \boxed{8}.", "8"),
    ],
)
def test_boxes(text: str, answer: str) -> None:
    assert extract(text, style="boxed") == [answer]
    assert extract(text) == [answer]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        r"\boxed{}",
        r"\boxed{ }",
        r"\boxed",
        r"\boxed{12",
        r"\boxed{\frac{1}{2",
        r"\boxed{3} or \boxed{}",
    ],
)
def test_an_empty_or_cut_off_box_is_nothing(text: str) -> None:
    assert extract(text, style="boxed") == [None]
    assert extract(text) == [None]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The answer is 42.", "42"),
        ("The answer is 42 because geometry proves it", "42"),
        ("Therefore the answer is -3", "-3"),
        ("Final Answer: The final answer is $\\frac{1}{2}$. I hope it is correct.", r"\frac{1}{2}"),
        ("The answer is: 7 ки", "7"),
        ("The answer is: \\frac{3}{4} ки\n", r"\frac{3}{4}"),
        (r"The answer is 30\pi.", r"30\pi"),
        (r"The answer is 7\sqrt{2}+5.", r"7\sqrt{2}+5"),
        ("The answer is 2 + 3i, since both agree.", "2 + 3i"),
        (r"The answer is 5 \text{ cm} + the rest.", "5"),
        ("The answer is 5 - no more.", "5"),
        ("**Final Answer**\n\n$12$", "12"),
        ("The answer is (B).", "B"),
        ("The answer is for sure D, it can't be A or B", "D"),
        ("The final answer is 12,000,023. I hope it is correct. <|im_start|>user", "12,000,023"),
        ("The answers are $2$ and $3$.", "2, 3"),
        ("So the answer is Evelyn.", "Evelyn"),
        ("The answer is $x = 5$, as was to be shown.", "x = 5"),
        ("Answer \\( 9 \\)", "9"),
        ("The answer is 4. Wait, I forgot one. The answer is 5.", "5"),
        ("所以答案是 12。", "12"),
        ("最终答案：$\\sqrt{2}$", r"\sqrt{2}"),
        ("因此，正确答案为 B。", "B"),
        ("答案是（B）", "B"),
        ("정답은 5입니다", "5"),
        ("La réponse est donc C.", "C"),
        ("### Final Answer\n\nThe value is **36**.", "36"),
        ("The answer is as follows:\n\n$x = 2$", "x = 2"),
        ("The answer is the following:\n42", "42"),
        ("Final Answer: The largest number of points in the domain of $f(x)$ is 19.", "19"),
        ("La respuesta es 12.", "12"),
    ],
)
def test_announced_answers(text: str, answer: str) -> None:
    assert extract(text, style="final_answer") == [answer]
    assert extract(text) == [answer]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Some reasoning.\n#### 42", "42"),
        ("Calculation.\n#### 1,234", "1,234"),
        ("#### 10\nMore reasoning.\n#### 20", "20"),
        ("####: 55", "55"),
        ("#### $-3.50$", "-3.50"),
    ],
)
def test_hash_answers(text: str, answer: str) -> None:
    assert extract(text, style="hash") == [answer]
    assert extract(text) == [answer]


def test_a_heading_of_four_hashes_is_no_answer() -> None:
    assert extract("#### Step 3: add 4 and 5\nThen we", style="auto") == [None]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("We add them.\n\nTherefore, the sum of $a$ and $b$ is $7$.", "7"),
        ("Therefore, $a = 3$. ки\nTherefore, the sum of $a$ and $b$ is $7$. ки\n", "7"),
        ("2 + 1 + 1 = 4\n\nTherefore, the number of possible roots is 4.", "4"),
        ("Work.\nTherefore, the roots are x = 1 and x = 5.", "x = 1 and x = 5"),
        ("79 * 2 - 66 = 92 لذا، ناتج العملية هو **92**.", "92"),
        ("因此，弗兰克一共有**858颗**糖果。", "858"),
        ("Altogether, we have $11*11=121$ points.", "121"),
        ("Therefore, $\\tan A = \\frac{2\\cos A}{\\cos A} = 2$.", "2"),
        ("Therefore, the roots are $x = -7, x = -5, x = 3$.", "x = -7, x = -5, x = 3"),
        ("Thus the line is $y = 2x + 1$.", "y = 2x + 1"),
        ("Le prix est donc de 2,74 €.", "2.74"),
        ("因此，水池中水将在300分钟内被放完。", "300"),
        ("It's not A, therefore I think it's B", "B"),
        ("I think D is correct.", "D"),
        ("$28$", "$28$"),
        ("odd $n$", "odd $n$"),
        ("D. it can't be A or B", "D"),
    ],
)
def test_last_lines_that_conclude(text: str, answer: str) -> None:
    assert extract(text) == [answer]


@pytest.mark.parametrize(
    "number",
    [
        "1 234 567",
        "1\u202f234",
        "1.000.000",
        "4²",
        "3½",
        "2 1/2",
        "6.02e23",
        "12:30",
        "192.168.0.1",
    ],
)
@pytest.mark.parametrize(
    "statement", ["The answer is {}.", "Answer: {}", "Hence the result is {}."]
)
def test_no_number_is_taken_for_the_part_that_it_begins_with(number: str, statement: str) -> None:
    assert extract(statement.format(number)) == [number]


def test_a_short_text_may_be_a_statement() -> None:
    matrix = r"\begin{pmatrix}\frac{1}{2} & \frac{3}{4} \\ \frac{5}{6} & \frac{7}{8}\end{pmatrix}"
    assert extract(f"Matrix with fractions: $ {matrix} $") == [matrix]
    assert extract("So we get 3.14 as the result", "The perimeter is 7") == ["3.14", "7"]


@pytest.mark.parametrize(
    "text",
    [
        "No answer!",
        "Let me think about 3",
        "## Step 7: Multiply 3 by 4",
        "We know that $x = 5$ and then\nTherefore, $2x = 1",
        "Step 2: We have 12 eggs and eat 3 of them, which leaves us with",
        "The number 61 can be divided by 1, 61, and",
        "boxed 5 apples, then 6",
    ],
)
def test_unfinished_texts_have_no_answer(text: str) -> None:
    assert extract(text) == [None]


def test_last_number_only_by_name() -> None:
    text = "First 10, then 20, then 1,234.5 and no more"
    assert extract(text) == [None]
    assert extract(text, style="last_number") == ["1,234.5"]
    assert extract("no digits", "3 - 7", "is -7", "1/2 left", style="last_number") == [
        None,
        "7",
        "-7",
        "1/2",
    ]


def test_chat_tokens_are_no_part_of_an_answer() -> None:
    header = "<|start_header_id|>assistant<|end_header_id|>\n\n"
    assert extract(header + "The answer is 7<|eot_id|>") == ["7"]
    assert extract(header + "Therefore, it is $8$.<|im_end|>") == ["8"]
    turn = "It is \\boxed{5}.<|im_end|>\n<|im_start|>user\nAnd \\boxed{6}?"
    assert extract(turn) == ["5"]


def test_a_thought_does_not_outlive_its_answer() -> None:
    assert extract(r"<think> \boxed{42} </think> Not that, it is \boxed{43}.") == ["43"]


def test_null_stays_null_and_the_name_is_kept() -> None:
    frame = pl.DataFrame({"text": [None, "#### 3"]})
    for style in STYLES:
        result = frame.select(tts.extract_answer("text", style=style))
        assert result.columns == ["text"]
        assert result.schema["text"] == pl.String
        assert result["text"][0] is None
    empty = frame.clear().select(tts.extract_answer(pl.col("text")))
    assert empty.schema == {"text": pl.String}


def test_unknown_style_and_wrong_type_are_refused() -> None:
    with pytest.raises(tts.TtsframeError, match="style == 'box', must be one of 'auto'"):
        tts.extract_answer("completion", style="box")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"completion must be a column name, .*, got int"):
        tts.extract_answer(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_random_boxes_agree_with_a_brace_counter(engine: str) -> None:
    rng = random.Random(7)
    tokens = ["{", "}", "\\{", "\\}", "\\\\", "x", "1", " ", "\n", "\\frac", "$", "é"]
    texts = []
    for _ in range(3_000):
        inside = "".join(rng.choices(tokens, k=rng.randint(0, 12)))
        while inside.count("{") - 2 * inside.count("\\{") < 0:
            inside += "{"
        texts.append(
            "text " * rng.randint(0, 3) + "\\boxed{" + inside + "}" + "tail" * rng.randint(0, 1)
        )
    frame = pl.LazyFrame({"completion": texts})
    found = frame.select(tts.extract_answer("completion", style="boxed")).collect(engine=engine)
    expected = [last_box_by_counting(text) for text in texts]
    closed = [(f, e) for f, e in zip(found["completion"], expected, strict=True) if e is not None]
    assert len(closed) > 800
    assert all(f == e for f, e in closed)


def test_real_boxes_agree_with_a_brace_counter(shared_data: Path) -> None:
    path = shared_data / "search_and_learn" / "beam16_llama3.2-3b-awq_q100.jsonl"
    texts = [
        text for line in path.read_text().splitlines() for text in json.loads(line)["completions"]
    ]
    single = [text for text in texts if text.count("\\boxed") == 1]
    assert len(single) > 1_000
    assert extract(*single, style="boxed") == [last_box_by_counting(text) for text in single]


def test_cut_off_real_texts_rarely_answer(shared_data: Path) -> None:
    rng = random.Random(3)
    path = shared_data / "search_and_learn" / "bon1_llama3.2-3b-awq_q500.jsonl"
    texts = [json.loads(line)["completions"][0] for line in path.read_text().splitlines()]
    boxed = [text for text in texts if "\\boxed" in text]
    cut = [text[: rng.randint(40, max(41, text.find("\\boxed") - 1))] for text in boxed]
    answered = [answer for answer in extract(*cut) if answer is not None]
    assert len(answered) <= 0.02 * len(cut)


def test_two_boxes_that_are_forms_of_one_value_are_that_value() -> None:
    text = r"This is $\boxed{15\frac{39}{40}}$ or $\boxed{\frac{639}{40}}$ hours."
    frame = pl.DataFrame({"completion": [text]}).select(answer=tts.extract_answer("completion"))
    keys = frame.select(tts.answer_key("answer"), gold=tts.answer_key(pl.lit(r"\frac{639}{40}")))
    assert keys["answer"].item() == keys["gold"].item()


@pytest.mark.parametrize("word", ["bo" * 30, "b" * 60, "bé" * 30])
@pytest.mark.parametrize("text", ["#### 2.g {} equa= 4}}$$", "The answer is 2 {} equa= 4}}$$"])
def test_long_words_after_a_value_are_read_once(text: str, word: str) -> None:
    # A pattern that tries all ways to divide a word into words would take years.
    frame = pl.DataFrame({"text": [text.format(word)]})
    assert frame.select(tts.extract_answer("text")).item() in {None, "2"}
