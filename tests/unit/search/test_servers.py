"""Searches on servers: the tree is the one that the model's own functions give, whatever the wire and its faults."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import model_servers as fake
import polars as pl
import pytest
from numpydoc.validate import validate
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.errors import CompletionError, ParameterError
from ttsframe.search.servers.rewards import escaped

S = tts.search
V = S.servers
PROMPT = "{problem}\n\n"
QUICK: dict[str, Any] = {"backoff": 0.001, "timeout": 60.0}
PROBLEMS = pl.DataFrame({
    "problem_id": [f"p{i}" for i in range(4)],
    "problem": [f"problem-{i}" for i in range(4)],
})


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


def run(
    generator: Any, prm: Any, policy: Any = None, problems: pl.DataFrame = PROBLEMS
) -> pl.DataFrame:
    return S.search(problems, generator, prm, policy or S.DVTS(4), seed=3)


def tree(nodes: pl.DataFrame) -> pl.DataFrame:
    return nodes.drop("n_prompt_tokens_new")


def expected(per_request: int | None = None, **options: Any) -> pl.DataFrame:
    return tree(run(fake.local_generator(per_request=per_request), fake.local_verifier, **options))


def openai(url: str, **options: Any) -> Any:
    return V.openai_generator(f"{url}/v1", "m", **({"prompt": PROMPT} | QUICK | options))


def verifier(url: str, **options: Any) -> Any:
    options = {"style": "worker", "texts_per_request": 2} | QUICK | options
    return V.server_verifier(url, "m", **options)


GENERATORS: dict[str, tuple[fake.Models, Callable[[str], Any], int | None]] = {
    "vllm": (fake.Models(), openai, None),
    "sglang": (fake.Models(says="matched_stop"), lambda u: openai(u, n_per_request=1), 1),
    "keeps": (fake.Models(says="keeps"), lambda u: openai(u, step_end="text", n_per_request=1), 1),
    "at most one": (fake.Models(cap=1), openai, 1),
    "chat": (
        fake.Models(),
        lambda u: V.chat_generator(f"{u}/v1", "m", **QUICK),
        None,
    ),
    "llama.cpp": (fake.Models(), lambda u: V.llama_cpp_generator(u, prompt=PROMPT, **QUICK), 1),
    "tgi": (fake.Models(), lambda u: V.tgi_generator(f"{u}/v1", prompt=PROMPT, **QUICK), 1),
}


@pytest.mark.parametrize("name", GENERATORS)
def test_each_wire_gives_the_tree_of_the_model(name: str) -> None:
    models, make, per_request = GENERATORS[name]
    with fake.serving(models) as url:
        generator = make(url)
        policy = S.DVTS(4, lookahead=1)
        found = run(generator, fake.local_verifier, policy)
    assert_frame_equal(tree(found), expected(per_request, policy=policy))
    assert generator.usage.n_requests == len(models.bodies)
    assert generator.usage.n_completion_tokens >= found["n_tokens"].sum()
    assert not generator.usage.n_lost
    assert not [t for t in threading.enumerate() if t.name.startswith("ttsframe-")]


def test_the_last_round_writes_to_the_end() -> None:
    policy = S.Beam(4, max_rounds=2, last_round="finish")
    with fake.serving(fake.Models()) as url:
        found = run(openai(url), fake.local_verifier, policy)
    assert_frame_equal(tree(found), expected(policy=policy))


def test_a_server_that_cuts_stops_off_in_silence_is_refused_or_cut_here() -> None:
    with fake.serving(fake.Models(says="nothing")) as url:
        with pytest.raises(CompletionError, match=r"does not say whether .* step_end='newline'"):
            run(openai(url), fake.local_verifier)
        generator = openai(url, step_end="newline", n_per_request=1)
        found = run(generator, fake.local_verifier)
    # What the model writes on is thrown away; the steps are those that it writes first.
    steps = found.filter(finish_reason="step")["text"]
    assert steps.str.ends_with(fake.SEPARATOR).all()
    assert (steps.str.count_matches(fake.SEPARATOR) == 1).all()
    assert found.filter(finish_reason="stop")["text"].str.contains("boxed").all()


def test_all_sampling_values_are_sent_and_can_be_taken_out() -> None:
    models = fake.Models()
    with fake.serving(models) as url:
        run(openai(url, extra={"top_k": None, "min_p": 0.1}), fake.local_verifier)
    _, body = models.bodies[0]
    assert body["min_p"] == 0.1
    assert "top_k" not in body
    assert {"temperature", "top_p", "max_tokens", "seed", "n", "stop", "model"} <= set(body)
    assert len({b["seed"] for _, b in models.bodies}) == len(models.bodies)
    with pytest.raises(ParameterError, match="'seed', which the search sets"):
        openai("http://localhost", extra={"seed": 1})


def test_a_limit_of_choices_is_found_once() -> None:
    models = fake.Models(cap=3)
    requests = pl.DataFrame({
        "problem": ["a"] * 2,
        "prefix": ["", "b\n\n"],
        "n": [8, 5],
        "draw": [5, 6],
        "is_greedy": [False] * 2,
        "until": ["step"] * 2,
    }).cast({"draw": pl.UInt64})
    with fake.serving(models) as url:
        generator = openai(url)
        answers = [asyncio.run(generator(requests)) for _ in range(2)]
        generator.end_search()
    assert_frame_equal(*answers)
    assert_frame_equal(
        answers[0].select("text"), fake.local_generator(per_request=3)(requests).select("text")
    )
    sizes = [body["n"] for _, body in models.bodies]
    assert sorted(sizes[:2]) == [5, 8]
    assert max(sizes[2:]) <= 3


def test_a_server_that_draws_copies_with_a_seed_is_refused() -> None:
    class Copies(fake.Models):
        def completions(self, body: dict[str, Any]) -> dict[str, Any]:
            reply = super().completions(body)
            for choice in reply["choices"]:
                choice |= {**reply["choices"][-1], "index": choice["index"]}
            return reply

    with fake.serving(Copies()) as url:
        with pytest.raises(CompletionError, match=r"the same text for all .* n_per_request=1"):
            run(openai(url), fake.local_verifier)
        found = run(openai(url, n_per_request=1), fake.local_verifier)
    assert_frame_equal(tree(found), expected(1))


SCORES: dict[str, tuple[dict[str, Any], Callable[[str, list[str]], Any]]] = {
    "qwen": ({"style": "qwen"}, lambda p, s: [fake.value(p, s[: i + 1]) for i in range(len(s))]),
    "qwen, rendered": (
        {"style": "qwen", "prompt": "{problem}::"},
        lambda p, s: [fake.value(p, s[: i + 1]) for i in range(len(s))],
    ),
    "math_shepherd": (
        {"style": "math_shepherd", "prompt": "{problem}::"},
        lambda p, s: [fake.value(p, s[: i + 1]) for i in range(len(s))],
    ),
    "worker": (
        {"style": "worker"},
        lambda p, s: [fake.value(p, s[: i + 1]) for i in range(len(s))],
    ),
    "chat": ({"style": "chat"}, lambda p, s: fake.value(p, s) * 0.98 + 0.01),
    "vllm_classify": (
        {"style": "vllm_classify"},
        lambda p, s: fake.value("", ["\n\n".join([p, *s])]),
    ),
    "sglang_classify": (
        {"style": "sglang_classify"},
        lambda p, s: fake.value("", ["\n\n".join([p, *s])]),
    ),
    "vllm_score": ({"style": "vllm_score"}, lambda p, s: fake.value(p, ["\n\n".join(s)])),
}


def score(prm: Any, texts: list[tuple[str, str]]) -> list[Any]:
    frame = pl.DataFrame(
        {"problem": [p for p, _ in texts], "prefix": ["" for _ in texts], "text": [t for _, t in texts],
         "lookahead_text": [None for _ in texts]},
        schema_overrides={"lookahead_text": pl.String},
    )  # fmt: skip
    try:
        return list(asyncio.run(prm(frame)))
    finally:
        prm.end_search()


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("faulty", [False, True])
def test_each_reward_model_scores_the_steps_it_was_given(name: str, *, faulty: bool) -> None:
    options, truth = SCORES[name]
    texts = [
        ("a", "one\n\n"), ("b", "one\n\ntwo\n\n"), ("a", "one\n\n\n\n \n\nthree"), ("c", ""),
        ("b", "one\n\ntwo\n\n"), *((f"p{i}", "x\n\ny\n\n") for i in range(20)),
    ]  # fmt: skip
    fault = fake.sometimes("429", "500", "503", "cut", "reset") if faulty else None
    models = fake.Models(fault=fault)
    with fake.serving(models) as url:
        base = f"{url}/v1" if name == "chat" else url
        found = score(verifier(base, **options), texts)
    wanted = [truth(p, s) if (s := fake.split(t)) else None for p, t in texts]
    assert [type(each) for each in found] == [type(each) for each in wanted]
    for one, other in zip(found, wanted, strict=True):
        assert one is None if other is None else one == pytest.approx(other)
    assert bool(sum(models.faults.values())) == faulty


def test_a_reward_model_on_a_server_guides_a_search() -> None:
    with fake.serving(fake.Models()) as url:
        found = run(openai(url), verifier(url))
    assert_frame_equal(tree(found), expected())


def test_a_wrong_number_of_scores_is_an_error_that_says_both() -> None:
    with (
        fake.serving(fake.Models(scores_extra=2)) as url,
        pytest.raises(
            CompletionError, match=r"returned 4 scores for 2 steps; the first step is 'one'"
        ),
    ):
        score(verifier(url, style="qwen"), [("a", "one\n\ntwo")])


def test_a_step_tag_in_a_text_is_no_step() -> None:
    with fake.serving(models := fake.Models()) as url:
        found = score(verifier(url, style="qwen"), [("a", "one<extra_0> is\n\ntwo")])
    assert len(found[0]) == 2
    assert models.bodies[0][1]["messages"][-1]["content"] == "one< extra_0> is<extra_0>two<extra_0>"
    assert escaped("xки ки", " ки") == "xк и к и"


def test_what_does_not_fit_has_no_score_and_spoils_no_other() -> None:
    texts = [("a", "one"), ("b", "too long"), ("c", "three")]
    prm = None
    with fake.serving(fake.Models()) as url:
        prm = verifier(url, style="math_shepherd", prompt="{problem}::")
        with pytest.warns(UserWarning, match="2 too long for the context"):
            found = score(prm, texts)
    assert found[1] is None
    assert found[0] == [fake.value("a", ["one"])]
    assert found[2] == [fake.value("c", ["three"])]


@pytest.mark.parametrize("tries", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_faults_that_cannot_depend_on_the_text_leave_the_tree_as_it_is(tries: int) -> None:
    models = fake.Models(fault=fake.sometimes("429", "502", "503", "504", "reset", tries=tries))
    with fake.serving(models) as url:
        generator, prm = openai(url, n_workers=7), verifier(url, n_workers=7)
        found = run(generator, prm)
    assert_frame_equal(tree(found), expected())
    assert {"429", "502", "503", "504", "reset"} <= set(models.faults)
    n_retries = generator.usage.n_retries + prm.usage.n_retries
    assert n_retries == sum(models.faults.values())
    assert "repeated" in str(generator.usage)


@pytest.mark.parametrize("fault", ["500", "cut", "garbled", "slow", "drip"])
def test_a_fault_that_may_depend_on_the_text_is_kept_as_such_and_not_drawn_again(
    fault: str,
) -> None:
    # One request in nine fails, always; never the first.
    seen: list[bytes] = []

    def often(content: bytes, _: int) -> str | None:
        seen.append(content)
        return fault if len(seen) % 9 == 0 else None

    models = fake.Models(fault=often)
    timeout = 0.5 if fault in {"slow", "drip"} else 60.0
    with fake.serving(models) as url:
        generator = openai(url, timeout=timeout, n_per_request=1, n_workers=1, max_lost=0.5)
        with pytest.warns(UserWarning, match=r"gave up .* biased to short ones"):
            found = run(generator, fake.local_verifier, S.BestOfN(8), PROBLEMS.head(2))
    n_failed = sum(models.faults.values())
    assert n_failed
    assert found["finish_reason"].eq("error").sum() == n_failed == generator.usage.n_lost
    assert found.filter(finish_reason="error")["text"].null_count() == n_failed
    assert max(models.tries.values()) == 1
    assert not generator.usage.retries


def test_a_path_that_does_not_fit_ends_as_too_long() -> None:
    problems = pl.DataFrame({"problem_id": ["a", "b"], "problem": ["fits", "too long"]})
    with fake.serving(fake.Models()) as url, pytest.warns(UserWarning, match="too long for the"):
        found = run(openai(url), fake.local_verifier, problems=problems)
    assert found.filter(problem_id="b").select("text", "finish_reason").unique().rows() == [
        ("", "length")
    ]
    assert found.filter(problem_id="a").height > 4


def test_a_server_that_mostly_fails_ends_the_search() -> None:
    with (
        fake.serving(fake.Models(fault=lambda *_: "500")) as url,
        pytest.raises(CompletionError, match=r"answered 500 .* requests were given up.*max_lost"),
        pytest.warns(UserWarning, match="gave up"),
    ):
        run(openai(url, n_per_request=1), fake.local_verifier)


@pytest.mark.parametrize("status", ["400", "401", "404", "501", "505", "302"])
def test_what_cannot_pass_ends_the_search_at_once(status: str) -> None:
    with (
        fake.serving(models := fake.Models(fault=lambda *_: status)) as url,
        pytest.raises(CompletionError, match=f"answered {status}"),
    ):
        run(openai(url, n_workers=1), fake.local_verifier)
    assert len(models.bodies) == 1


def test_a_reply_of_a_gigabyte_is_not_read() -> None:
    generator = openai("http://localhost")
    assert generator._client.settings.max_reply_bytes < 100_000_000
    with fake.serving(models := fake.Models(fault=lambda *_: "huge")) as url:
        generator = openai(url, n_workers=1)
        client = generator._client
        client.settings = replace(client.settings, max_reply_bytes=1_000_000)
        with pytest.raises(CompletionError, match="more than 1,000,000 bytes"):
            run(generator, fake.local_verifier)
    assert len(models.bodies) == 1


def lengths(fault: fake.Fault | None, **options: Any) -> tuple[pl.DataFrame, Any]:
    problems = pl.DataFrame({"problem_id": range(12), "problem": [f"q{i}" for i in range(12)]})
    with fake.serving(fake.Models(fault=fault)) as url:
        generator = openai(url, n_per_request=1, max_lost=1.0, **options)
        return run(generator, fake.local_verifier, S.BestOfN(8, max_rounds=1), problems), generator


def by_length(name: str) -> fake.Fault:
    """Fail more often the longer the text is that the model would write."""

    def fault(content: bytes, n_before: int) -> str | None:
        body = json.loads(content)
        text, _ = fake.write(body["prompt"], body["seed"], 0, "step")
        return (
            name if n_before == 0 and fake.bits(content, "f") % 24 < fake.n_tokens(text) else None
        )

    return fault


def test_failures_in_proportion_to_length_change_no_length_or_are_reported() -> None:
    plain, _ = lengths(None)
    again, generator = lengths(by_length("503"))
    assert_frame_equal(plain, again)
    assert generator.usage.n_retries > 20
    with pytest.warns(UserWarning, match="biased to short ones"):
        lost, generator = lengths(by_length("500"))
    is_there = lost["finish_reason"] != "error"
    assert_frame_equal(lost.filter(is_there).select("node_id", "text", "n_tokens"),
                       plain.filter(is_there).select("node_id", "text", "n_tokens"))  # fmt: skip
    assert generator.usage.lost == {"answered 500": int((~is_there).sum())}
    # To draw again until it passes, as a client that repeats 500 would with another seed, is what biases.
    assert lost.filter(is_there)["n_tokens"].mean() < plain["n_tokens"].mean() - 1  # type: ignore[operator]


def test_a_slow_problem_does_not_hold_up_the_others() -> None:
    def n_others(models: fake.Models) -> int:
        return sum("problem-0" not in body["prompt"] for _, body in models.bodies)

    with fake.serving(plain := fake.Models()) as url:
        run(openai(url), fake.local_verifier)
    held: list[int] = []

    def holds(content: str) -> bool:
        if "problem-0" not in content or n_others(models) == n_others(plain):
            return False
        held.append(n_others(models))
        return True

    models = fake.Models(holds=holds)
    with fake.serving(models) as url:
        found = run(openai(url), fake.local_verifier)
    assert_frame_equal(tree(found), expected())
    assert 0 < len(held) < 1900  # held back, and let go because all others had ended


def test_connections_are_reused_and_no_more_than_workers_at_once() -> None:
    models = fake.Models(delay=lambda _: 0.001)
    with fake.serving(models) as url:
        run(openai(url, n_workers=5), fake.local_verifier)
    assert models.n_connections <= 5
    assert models.n_most <= 5
    assert len(models.bodies) > 20


def test_an_error_does_not_wait_for_other_requests() -> None:
    def fault(content: bytes, _: int) -> str | None:
        return "400" if b"problem-3" in content else "slow"

    begun = time.monotonic()
    with (
        fake.serving(fake.Models(fault=fault)) as url,
        pytest.raises(CompletionError, match="answered 400"),
    ):
        run(openai(url), fake.local_verifier)
    assert time.monotonic() - begun < 50  # "slow" takes 60 seconds


CHATS = {
    "begins anew": (fake.Models(continues=False), "begins a new one: prompts of"),
    "trims": (fake.Models(trims=True), "the chat template cuts off"),
}


@pytest.mark.parametrize("name", CHATS)
def test_a_chat_that_does_not_continue_a_message_as_it_is_is_refused(name: str) -> None:
    models, message = CHATS[name]
    with fake.serving(models) as url, pytest.raises(CompletionError, match=message):
        run(V.chat_generator(f"{url}/v1", "m", **QUICK), fake.local_verifier)
    assert len(models.bodies) == 3


LLAMA = (
    "{{- bos_token }}{%- for message in messages %}\n"
    "{{- '<|start|>' + message['role'] + '<|end|>\\n\\n' + message['content'] | trim + '<|eot|>' }}\n"
    "{%- endfor %}\n{%- if add_generation_prompt %}\n{{- '<|start|>assistant<|end|>\\n\\n' }}\n{%- endif %}\n"
)


def test_a_chat_template_is_rendered_up_to_the_answer_and_steps_follow_as_they_are(
    tmp_path: Any,
) -> None:
    wanted = "<|start|>system<|end|>\n\nbe brief<|eot|><|start|>user<|end|>\n\n1 + 1?<|eot|>"
    wanted += "<|start|>assistant<|end|>\n\n"
    assert V.chat_prompt(LLAMA, system="be brief")("1 + 1?") == wanted
    file = tmp_path / "tokenizer_config.json"
    file.write_text(json.dumps({"chat_template": LLAMA}))
    assert V.chat_prompt(file, system="be brief")("1 + 1?") == wanted
    models = fake.Models()
    with fake.serving(models) as url:
        run(openai(url, prompt=V.chat_prompt(LLAMA)), fake.local_verifier)
    deep = [b["prompt"] for _, b in models.bodies if b["prompt"].count("\n\n") > 2]
    assert deep
    assert all(prompt.endswith("\n\n") for prompt in deep)
    for bad in (
        "{% if",
        "{{ raise_exception('no system') }}",
        "fixed",
        "{{ ''.__class__.__mro__ }}",
    ):
        with pytest.raises(ParameterError, match="template"):
            V.chat_prompt(bad)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prompt": "no place"}, "must contain '{problem}'"),
        ({"prompt": None}, "prompt is missing"),
        ({"separator": ""}, "separator is empty"),
        ({"step_end": "never"}, "step_end == 'never'"),
        ({"max_tokens": 0}, "max_tokens == 0"),
        ({"n_per_request": 0}, "n_per_request == 0"),
        ({"max_lost": 2.0}, "max_lost == 2.0"),
    ],
)
def test_parameters_are_checked_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(tts.TtsframeError, match=message):
        openai("http://localhost", **options)


def test_no_key_is_shown() -> None:
    key = "sk-very-secret"
    with fake.serving(fake.Models(fault=lambda *_: "401")) as url:
        generator = openai(url, api_key=key)
        with pytest.raises(CompletionError) as error:
            run(generator, fake.local_verifier)
    assert key not in f"{error.value}{generator!r}{generator.usage}"


@pytest.mark.parametrize("name", V.__all__)
def test_a_docstring_has_the_form_of_the_house(name: str) -> None:
    exempt = {"PR04", "SA01", "ES01"} | (
        {"PR01"} if name.startswith(("Server", "Transformers")) else set()
    )
    errors = validate(f"ttsframe.search.servers.{name}")["errors"]
    assert not [error for error in errors if error[0] not in exempt]
    assert "tts.search.servers." in (getattr(V, name).__doc__ or "")
