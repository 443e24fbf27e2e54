from __future__ import annotations

import copy
import pickle

import polars as pl
import pytest

import ttsframe as tts
from ttsframe import errors
from ttsframe._exprs import raise_where
from ttsframe._settings import BY, found, setting, settings_in

CLASSES = [
    error
    for error in (getattr(errors, name) for name in errors.__all__)
    if not issubclass(error, Warning)
]

BUILT_IN = {
    errors.ParameterError: ValueError,
    errors.ParameterTypeError: TypeError,
    errors.ColumnsError: ValueError,
    errors.DataError: ValueError,
    errors.SourceError: ValueError,
    errors.EngineError: RuntimeError,
    errors.CompletionError: RuntimeError,
    errors.MissingExtraError: ImportError,
}


@pytest.mark.parametrize("error", CLASSES)
def test_there_is_one_root(error: type[Exception]) -> None:
    assert issubclass(error, tts.TtsframeError)
    assert str(error("what happened")) == "what happened"


@pytest.mark.parametrize("error", BUILT_IN)
def test_children_are_also_what_python_calls_them(error: type[Exception]) -> None:
    assert issubclass(error, BUILT_IN[error])


@pytest.mark.parametrize("error", CLASSES)
def test_errors_cross_processes(error: type[Exception]) -> None:
    made = error("what happened")
    for other in (pickle.loads(pickle.dumps(made)), copy.copy(made)):  # noqa: S301 - made one line above
        assert type(other) is error
        assert str(other) == "what happened"


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("error", CLASSES)
def test_errors_come_out_of_a_query_as_they_went_in(
    error: type[tts.TtsframeError], engine: pl.Engine
) -> None:
    described = pl.struct(broken=pl.col("x") > 1, x=pl.col("x"))
    plan = pl.LazyFrame({"x": [1, 2]}).filter(
        raise_where(described, lambda rows: error(f"x is {rows['x'][0]}"))
    )
    with pytest.raises(error) as caught:
        plan.collect(engine=engine)
    assert str(caught.value) == "x is 2"


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        (["a"], "1 missing column for trajectories: 'a'; found: ['b', 'c']. Hint: do this."),
        (
            ["a", "d"],
            "2 missing columns for trajectories: 'a', 'd'; found: ['b', 'c']. Hint: do this.",
        ),
    ],
)
def test_missing_columns_are_counted_and_named(missing: list[str], words: str) -> None:
    error = errors.ColumnsError.missing(missing, ["b", "c"], where="trajectories", hint="do this.")
    assert type(error) is errors.ColumnsError
    assert str(error) == words


def test_errors_know_the_parameters_that_their_message_names() -> None:
    error = errors.SourceError(f"line 2: not JSON. Hint: {setting('on_error', 'skip')} skips it.")
    assert [(one.text, one.name, one.value) for one in error.settings] == [
        ("on_error='skip'", "on_error", "skip")
    ]
    sent = pickle.loads(pickle.dumps(error))  # noqa: S301 - made above
    assert sent.settings == error.settings
    assert errors.DataError("nothing is named").settings == ()


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_errors_out_of_a_query_know_the_parameters_too(engine: pl.Engine) -> None:
    described = pl.struct(broken=pl.col("x") > 1, x=pl.col("x"))
    words = setting("by", "seed")
    plan = pl.LazyFrame({"x": [1, 2]}).filter(
        raise_where(described, lambda _: errors.DataError(f"rows repeat. Hint: {words}."))
    )
    with pytest.raises(errors.DataError) as caught:
        plan.collect(engine=engine)
    assert [(one.name, one.value) for one in caught.value.settings] == [("by", "seed")]


def test_spellings_that_are_remembered_are_bounded() -> None:
    for i in range(2_000):
        found("a_parameter", i)
    assert settings_in("a_parameter == 1999, must be less.")[0].name == "a_parameter"
    assert settings_in("a_parameter == 3, must be less.") == ()
    assert settings_in(f"Hint: {BY}.")[0].name == "by"
