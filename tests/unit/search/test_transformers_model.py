"""A model in this process, called as the library transformers calls models."""

from __future__ import annotations

import sys
from typing import Any

import fake_transformers as fake
import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe._draws import bits_at, uniforms
from ttsframe.search.servers import TransformersGenerator, transformers_generator

PROMPT = "{problem}\n\n"


def generator(model: fake.Model | None = None, **options: Any) -> TransformersGenerator:
    return transformers_generator(
        fake.Model() if model is None else model, fake.Tokenizer(),
        **({"prompt": PROMPT, "temperature": 1.0, "max_tokens": 8} | options),
    )  # fmt: skip


def requests(n: int, *, until: str = "step", is_greedy: bool = False) -> pl.DataFrame:
    problems = ["1+2", "3+4=?", "a", "1+2"]
    prefixes = ["", "3+4=7\n\n", "a\n\n", "b\n\n"]
    return pl.DataFrame({
        "problem_id": list("wxyz"),
        "problem": problems,
        "node_id": pl.Series(range(4), dtype=pl.UInt64),
        "depth": [0, 1, 1, 1],
        "prefix": prefixes,
        "n": [n, 1, n, 2],
        "draw": pl.Series([5, 6, 7, 8], dtype=pl.UInt64),
        "is_greedy": is_greedy,
        "until": until,
        "state": pl.Series([None] * 4, dtype=pl.UInt64),
    })


def written(
    row: dict[str, Any], child: int, *, most: int, top_p: float = 1
) -> tuple[str, str, int]:
    """Write one continuation in plain Python."""
    ids = fake.Tokenizer.encode(row["problem"] + "\n\n" + row["prefix"])
    key, text = bits_at(np.array([row["draw"]], dtype=np.uint64), np.array([child])), ""
    for place in range(most):
        logits = fake.logits_of(ids)
        chances = np.exp(logits) / np.exp(logits).sum()
        if top_p < 1:
            kept: list[int] = []
            for token in sorted(range(len(chances)), key=lambda token: -chances[token]):
                if sum(chances[kept]) < top_p:
                    kept.append(token)
            chances = np.array([p if i in kept else 0 for i, p in enumerate(chances)])
        drawn = float(uniforms(bits_at(key, np.array([place])))[0]) * chances.sum()
        token = next(i for i in range(len(chances)) if chances[: i + 1].sum() > drawn)
        if row["is_greedy"]:
            token = int(np.argmax(logits))
        if token in {fake.END, fake.STOP}:
            return text, "stop", place + 1
        ids.append(token)
        text += fake.TOKENS[token] if token != fake.PAD else ""
        if row["until"] == "step" and "\n\n" in text:
            return text[: text.index("\n\n") + 2], "step", place + 1
    return text, "length", most


@pytest.mark.parametrize("options", [{}, {"until": "end"}, {"is_greedy": True}])
@pytest.mark.parametrize("top_p", [1.0, 0.7])
def test_the_steps_are_those_of_plain_python(options: dict[str, Any], top_p: float) -> None:
    asked = requests(20, **options)
    expected = [
        written(row, child, most=8, top_p=top_p)
        for row in asked.iter_rows(named=True)
        for child in range(row["n"])
    ]
    found = generator(top_p=top_p)(asked)
    assert found.rows() == expected
    reasons = set(found["finish_reason"])
    if not options:
        assert reasons == {"step", "stop", "length"}
        steps = found.filter(finish_reason="step")
        assert steps["text"].str.ends_with("\n\n").all()


def test_a_text_does_not_depend_on_its_batch() -> None:
    asked = requests(9)
    whole = generator(batch_size=64)(asked)
    for batch_size in (1, 5):
        assert_frame_equal(generator(batch_size=batch_size)(asked), whole)
    # Of the same node more continuations begin with the same ones.
    more = generator()(requests(12))
    assert more[:9].rows() == whole[:9].rows()


def test_tokens_are_drawn_with_their_chances() -> None:
    asked = requests(4000)[:1]
    first = generator(max_tokens=1, temperature=2.0)(asked).with_columns(
        token=pl.col("text").replace("", None)
    )
    logits = fake.logits_of(fake.Tokenizer.encode("1+2\n\n")) / 2
    chances = np.exp(logits) / np.exp(logits).sum()
    for token in (*"0123456789", "\n"):
        chance = chances[fake.TOKENS.index(token)]
        share = (first["text"] == token).mean()
        assert abs(share - chance) < 4 * np.sqrt(chance / 4000)


def test_the_context_of_the_model_is_not_exceeded() -> None:
    model = fake.Model(context=10)
    found = generator(model)(requests(3))
    lengths = found["n_tokens"].to_list()
    assert all(n <= 6 for n in lengths[:3])
    assert found.rows()[3] == ("", "length", 0)
    # Rows of different room are different calls.
    assert {n for _, n in model.asked} == {6, 4}


def test_it_is_searched() -> None:
    problems = pl.DataFrame({"problem_id": ["a", "b"], "problem": ["1+2", "3"]})
    nodes = tts.search.search(
        problems, generator(), lambda paths: paths["text"].str.len_chars() / 9,
        tts.search.Beam(8, beam_width=2, max_rounds=4), seed=0,
    )  # fmt: skip
    assert nodes["round"].max() == 3
    assert nodes["n_tokens"].null_count() == 0
    assert repr(generator()) == "TransformersGenerator of Model"


def test_a_tokenizer_that_pads_behind_is_refused() -> None:
    class Older(fake.Tokenizer):
        def __call__(self, texts: list[str], **options: Any) -> fake.Encoding:
            return super().__call__(texts, **(options | {"padding_side": "right"}))

    behind = transformers_generator(fake.Model(), Older(), prompt=PROMPT)
    with pytest.raises(tts.errors.CompletionError, match=r"padding behind .* transformers 4\.45"):
        behind(requests(2))


def test_what_cannot_generate_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        tts.errors.ParameterTypeError, match="must be a name or have the method generate"
    ):
        transformers_generator(object(), fake.Tokenizer(), prompt=PROMPT)
    with pytest.raises(tts.errors.ParameterTypeError, match="tokenizer is a NoneType"):
        transformers_generator(fake.Model(), prompt=PROMPT)
    training = fake.Model()
    training.training = True
    with pytest.raises(tts.errors.ParameterError, match=r"model\.eval"):
        transformers_generator(training, fake.Tokenizer(), prompt=PROMPT)
    bare = fake.Tokenizer()
    bare.pad_token_id = None
    with pytest.raises(tts.errors.ParameterError, match="no padding token"):
        transformers_generator(fake.Model(), bare, prompt=PROMPT)
    with pytest.raises(tts.errors.ParameterError, match="top_p == 0"):
        generator(top_p=0.0)
    with pytest.raises(
        tts.errors.ParameterError, match="a text is missing in the column 'problem'"
    ):
        generator()(requests(1).with_columns(problem=pl.lit(None, pl.String)))
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(tts.errors.MissingExtraError, match="pip install transformers torch"):
        transformers_generator("some/model", prompt=PROMPT)
