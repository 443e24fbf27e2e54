"""A model in this process: an imitation of the library transformers, and the library itself where it is installed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import fake_transformers as fake
import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe._draws import bits_at, uniforms
from ttsframe.search.servers import TransformersGenerator, transformers_generator

PROMPT = "{problem}\n\n"


class Library(NamedTuple):
    """A way to make a model with a context and settings of its own, its tokenizer, and its logits."""

    model: Callable[..., Any]
    tokenizer: Any
    logits_of: Callable[[list[int]], Any]


@lru_cache
def transformers() -> Library:
    """Return a Llama with random weights and the tokens of the imitation."""
    library = pytest.importorskip("transformers", reason="transformers is not installed")
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    import tokenizers

    words = tokenizers.models.WordPiece(
        {token: number for number, token in enumerate(fake.TOKENS)},
        unk_token=fake.TOKENS[fake.PAD],
        continuing_subword_prefix="",
    )
    longest_first = tokenizers.Tokenizer(words)
    longest_first.decoder = tokenizers.decoders.Fuse()
    tokenizer = library.PreTrainedTokenizerFast(
        tokenizer_object=longest_first, additional_special_tokens=["<stop>"],
        pad_token="<pad>", eos_token="<end>",  # noqa: S106
    )  # fmt: skip

    def model(context: int = 1000, **told: object) -> Any:
        torch.manual_seed(0)
        config = library.LlamaConfig(
            vocab_size=len(fake.TOKENS), hidden_size=32, intermediate_size=64,
            num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            max_position_embeddings=context, initializer_range=0.3, bos_token_id=None,
            pad_token_id=fake.PAD, eos_token_id=[fake.END, fake.STOP],
        )  # fmt: skip
        made = library.LlamaForCausalLM(config).eval()
        vars(made.generation_config).update(told)
        return made

    whole = model()

    def logits_of(ids: list[int]) -> Any:
        with torch.no_grad():
            return whole(torch.tensor([ids])).logits[0, -1].double().numpy()

    return Library(model, tokenizer, logits_of)


@pytest.fixture(params=["imitation", "transformers"])
def library(request: pytest.FixtureRequest) -> Library:
    if request.param == "transformers":
        return transformers()
    return IMITATION


IMITATION = Library(fake.Model, fake.Tokenizer(), fake.logits_of)


def generator(
    library: Library = IMITATION, model: Any = None, **options: Any
) -> TransformersGenerator:
    return transformers_generator(
        library.model() if model is None else model, library.tokenizer,
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
    row: dict[str, Any], child: int, library: Library, *, most: int, top_p: float = 1
) -> tuple[str, str, int]:
    """Write one continuation in plain Python."""
    ids = fake.Tokenizer.encode(row["problem"] + "\n\n" + row["prefix"])
    key, text = bits_at(np.array([row["draw"]], dtype=np.uint64), np.array([child])), ""
    for place in range(most):
        logits = library.logits_of(ids)
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
def test_the_steps_are_those_of_plain_python(
    options: dict[str, Any], top_p: float, library: Library
) -> None:
    asked = requests(20, **options)
    expected = [
        written(row, child, library, most=8, top_p=top_p)
        for row in asked.iter_rows(named=True)
        for child in range(row["n"])
    ]
    found = generator(library, top_p=top_p)(asked)
    assert found.rows() == expected
    reasons = set(found["finish_reason"])
    if not options:
        assert reasons == {"step", "stop", "length"}
        steps = found.filter(finish_reason="step")
        assert steps["text"].str.ends_with("\n\n").all()


def test_a_text_does_not_depend_on_its_batch(library: Library) -> None:
    asked = requests(9)
    whole = generator(library, batch_size=64)(asked)
    for batch_size in (1, 5):
        assert_frame_equal(generator(library, batch_size=batch_size)(asked), whole)
    # Of the same node more continuations begin with the same ones.
    more = generator(library)(requests(12))
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


def test_the_context_of_the_model_is_not_exceeded(library: Library) -> None:
    model = library.model(context=10)
    found = generator(library, model)(requests(3))
    lengths = found["n_tokens"].to_list()
    assert all(n <= 6 for n in lengths[:3])
    assert found.rows()[3] == ("", "length", 0)
    if library is IMITATION:  # rows of different room are different calls
        assert {n for _, n in model.asked} == {6, 4}


@pytest.mark.parametrize(
    "told",
    [
        {"do_sample": True, "temperature": 0.3, "top_k": 2, "repetition_penalty": 1.5},
        {"no_repeat_ngram_size": 1, "suppress_tokens": [3, 4], "bad_words_ids": [[5]]},
        {"min_new_tokens": 4, "max_length": 9, "forced_eos_token_id": 1, "num_beams": 3},
        {"num_return_sequences": 2, "return_dict_in_generate": True, "stop_strings": ["3"]},
    ],
)
def test_what_the_files_of_a_model_say_on_sampling_changes_no_step(told: dict[str, Any]) -> None:
    library, asked = transformers(), requests(9)
    model = library.model(**told)
    assert generator(library, model)(asked).equals(generator(library)(asked))
    assert told.items() <= vars(model.generation_config).items()


def test_the_greedy_text_is_that_of_the_library() -> None:
    library, asked = transformers(), requests(1, until="end", is_greedy=True)
    for row, (text, reason, n_tokens) in zip(
        asked.iter_rows(named=True), generator(library)(asked)[:4].rows(), strict=True
    ):
        prompt = library.tokenizer(row["problem"] + "\n\n" + row["prefix"], return_tensors="pt")
        ids = library.model().generate(prompt["input_ids"], do_sample=False, max_new_tokens=8)[0]
        new = ids[prompt["input_ids"].shape[1] :]
        assert text == library.tokenizer.decode(new, skip_special_tokens=True)
        assert n_tokens == len(new)
        assert (reason == "stop") == (int(new[-1]) in {fake.END, fake.STOP})


def test_a_model_is_loaded_from_its_folder(tmp_path: Path) -> None:
    library, asked = transformers(), requests(9)
    library.model(repetition_penalty=1.5).save_pretrained(tmp_path)
    library.tokenizer.save_pretrained(tmp_path)
    loaded = transformers_generator(str(tmp_path), prompt=PROMPT, temperature=1.0, max_tokens=8)
    assert loaded(asked).equals(generator(library)(asked))


def test_it_is_searched(library: Library) -> None:
    problems = pl.DataFrame({"problem_id": ["a", "b"], "problem": ["1+2", "3"]})
    nodes = tts.search.search(
        problems, generator(library), lambda paths: paths["text"].str.len_chars() / 9,
        tts.search.Beam(8, beam_width=2, max_rounds=4), seed=0,
    )  # fmt: skip
    assert nodes["round"].max() == 3
    assert nodes["n_tokens"].null_count() == 0
    name = type(library.model()).__name__
    assert repr(generator(library)) == f"TransformersGenerator of {name}"


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
