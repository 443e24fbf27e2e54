"""The tables that charts draw: checked, named, thinned and put into the chart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple, cast

import altair as alt
import polars as pl
from polars import selectors

from ttsframe._checks import check_fraction, check_frame
from ttsframe._wording import (
    CURVE_COLUMNS,
    LEFT_OUT,
    counted,
    interval,
    is_minority,
    left_out,
    quantity_of,
    shorten,
    shorten_paths,
)
from ttsframe.charts.kinds import KINDS, explain_way, recognize_table
from ttsframe.errors import ColumnsError, DataError, ParameterTypeError
from ttsframe.schema import CLUSTER_COLUMNS, require_columns

FILTER_HINT: Final = "filter the table to those to compare."
GRADE_HINT: Final = (
    "the run has no grades, which tts.score_trajectories(trajectories) makes from a gold answer."
)

_NAME_WIDTH: Final = 44
_N_PANELS_MAX: Final = 12
_N_BUDGETS_MAX: Final = 64
_N_BUDGETS_MIN: Final = 8
_N_LINES_MAX: Final = 20
_N_NAMED_MAX: Final = 3
"""Runs, lines or budgets that a subtitle names."""
_N_POINTS_MAX: Final = 3_000
"""A point with its tooltip takes about 300 bytes of the page that holds the chart."""

LEVEL_BASES: Final = {
    "cross_fitted": "levels: estimated on the other half of the attempts",
    "reference": "levels: estimated on another run",
    "same_sample": (
        "levels: estimated on the same attempts, so hard ones look harder and easy ones easier"
    ),
    "given": "levels: given in the data",
}
LEVEL_CAVEATS: Final = {
    "few_attempts": "estimated on fewer than 16 attempts",
    "not_exchangeable": "estimated on attempts of a tree search, which are not independent",
}

_STATUSES: Final = {
    "short": "with too few attempts",
    "unscored": "without a score",
    "undefined": "with an undefined result",
    "ungraded": "without a grade",
}
_UNDRAWN: Final = (
    *("reduction", "budget_unit", "nominal_budget", "subsets", "standard_error"),
    *(
        "panel",
        "scores",
        "basis",
        "caveat",
        *CLUSTER_COLUMNS,
        *[f"n_{status}" for status in LEFT_OUT],
    ),
)


class Argument(NamedTuple):
    """The table that a chart is given, as messages name it."""

    where: str
    """Name of the parameter."""
    maker: str
    """The call that makes such a table."""
    kinds: tuple[str, ...]
    """The tables that the chart draws, as `KINDS` names them; the first is the one it is for."""

    empty_hint: str = ""
    """Why a table may have no rows, where there is a common reason."""

    @property
    def hint(self) -> str:
        """Where to get the table."""
        return f"{self.maker} makes this table."

    def collect(
        self,
        table: pl.DataFrame | pl.LazyFrame,
        *,
        texts: Sequence[str] = (),
        numbers: Sequence[str] = (),
        booleans: Sequence[str] = (),
    ) -> pl.DataFrame:
        """Collect the table after checking that it has its columns and a row; NaN becomes null."""
        self._check_kind(table)
        required = [*texts, *booleans, *numbers]
        schema = require_columns(table, required, where=self.where, hint=self.hint)
        wrong = [
            f"{name!r} is {schema[name]}"
            for name in numbers
            if not schema[name].is_numeric() and schema[name] != pl.Null
        ]
        self._refuse(wrong, "numbers")
        wrong = [
            f"{name!r} is {schema[name]}"
            for name in booleans
            if schema[name] not in {pl.Boolean, pl.Null}
        ]
        self._refuse(wrong, "Boolean")
        rows = table.collect() if isinstance(table, pl.LazyFrame) else table
        if rows.is_empty():
            raise DataError(
                f"{self.where} has no rows, so there is nothing to draw. Hint: "
                f"{self.empty_hint or f'look at what was passed to {self.maker}.'}"
            )
        return rows.with_columns(pl.col(numbers).fill_nan(None) if numbers else [])

    def _check_kind(self, table: object) -> None:
        """Refuse another table of this package by its name, and say how to get from it to this one."""
        wanted = KINDS[self.kinds[0]].text
        if not isinstance(table, pl.DataFrame | pl.LazyFrame):
            parts = vars(table) if hasattr(table, "__dict__") else {}
            if isinstance(table, tuple) and hasattr(table, "_asdict"):
                parts = table._asdict()
            for name, part in parts.items():
                if isinstance(part, pl.DataFrame) and recognize_table(part.columns) in self.kinds:
                    raise ParameterTypeError(
                        f"{self.where} is a {type(table).__name__}, must be the table in it. Hint: pass "
                        f"its .{name}"
                    )
        check_frame(table, self.where)
        columns = cast("pl.DataFrame | pl.LazyFrame", table).collect_schema().names()
        given = recognize_table(columns)
        if given is None or given in self.kinds:
            return
        draws = f"charts.{KINDS[given].chart} draws it; " if KINDS[given].chart else ""
        way = (
            explain_way(given, self.kinds[0]) or f"{draws}{self.maker} makes the one for this chart"
        )
        raise ColumnsError(
            f"{self.where}: this is {KINDS[given].text}, must be {wanted}. Hint: {way}."
        )

    def collect_curve(
        self,
        curve: pl.DataFrame | pl.LazyFrame,
        *,
        parts: Sequence[str] = (),
        booleans: Sequence[str] = (),
        ignored: Collection[str] = (),
    ) -> pl.DataFrame:
        """Check a curve, and that it has its parts; fill the columns that may be absent."""
        rows = self.collect(
            curve, texts=["selector"], numbers=["budget", *parts], booleans=booleans
        ).drop(ignored, strict=False)
        quantity = quantity_of(rows.columns)
        if quantity not in rows.columns:
            raise ColumnsError.missing(["accuracy"], rows.columns, where=self.where, hint=self.hint)
        defaults = {
            "reduction": pl.lit(None, pl.String),
            "budget_unit": pl.lit("attempts"),
            "ci_low": pl.lit(None, pl.Float64),
            "ci_high": pl.lit(None, pl.Float64),
            "n_problems": pl.lit(None, pl.Int64),
            **{f"n_{status}": pl.lit(0) for status in LEFT_OUT},
        }
        rows = rows.with_columns(**{
            name: value for name, value in defaults.items() if name not in rows.columns
        })
        counts = [name for name in defaults if name.startswith(("ci_", "n_"))]
        wrong = [
            f"{name!r} is {rows[name].dtype}"
            for name in (quantity, *counts)
            if not (rows[name].dtype.is_numeric() or rows[name].is_null().all())
        ]
        self._refuse(wrong, "numbers")
        values = pl.col(quantity, "ci_low", "ci_high").cast(pl.Float64).fill_nan(None)
        rows = rows.with_columns(values)
        apart = find_run_columns(rows, {*CURVE_COLUMNS, *parts, *booleans})
        self.check_one_per_point(rows, [*apart, "selector", "reduction", "budget"])
        units = rows["budget_unit"].unique().sort().to_list()
        if len(units) > 1:
            raise DataError(
                f"{self.where} has budgets in {units}, one axis holds one unit. Hint: filter "
                "'budget_unit'."
            )
        if rows["budget"].null_count() not in {0, rows.height}:
            raise DataError(
                f"{self.where} has budgets that are numbers and budgets that are null (all attempts). "
                "Hint: filter one kind, or give the number of attempts as a budget."
            )
        self.check_budgets(rows)
        return shorten_names(rows, "selector", "reduction")

    def collect_levels(self, curve: pl.DataFrame | pl.LazyFrame, level: str) -> pl.DataFrame:
        """Collect a curve by level, or by another column, which is named `level` then."""
        if level == "level":
            return self.collect(curve, texts=["level"], numbers=["budget"])
        # Any curve will do if it has the column.
        other = self._replace(
            kinds=("leveled", "curve"),
            maker=f"tts.scaling_curve(problems, by={level!r})",
        )
        table = other.collect(curve, texts=[level], numbers=["budget"])
        return table.drop("level", strict=False).rename({level: "level"})

    def _refuse(self, wrong: Sequence[str], expected: str) -> None:
        """Raise if there are columns of a wrong dtype."""
        if wrong:
            raise ColumnsError(
                f"{self.where}: {', '.join(wrong)}, must be {expected}. Hint: {self.hint}"
            )

    def check_one_per_point(
        self, rows: pl.DataFrame, point: Sequence[str], *, hint: str | None = None
    ) -> None:
        """Check that no two rows are drawn at one point."""
        apart = f"keep the column that tells the runs apart, as {self.maker[:-1]}, by=...) does."
        repeated = rows.filter(pl.struct(point).is_duplicated())
        if not repeated.is_empty():
            raise DataError(
                f"{self.where} has several rows for {repeated.select(point).row(0, named=True)}, must "
                f"have one per point. Hint: {hint or apart}"
            )

    def check_at_most(self, n: int, most: int, what: str, *, hint: str = FILTER_HINT) -> None:
        """Check that a chart holds no more than can be told apart, or than fits on a page."""
        if n > most:
            raise DataError(
                f"{self.where} has {n:,} {what}, this chart holds at most {most:,}. Hint: {hint}"
            )

    def require_values(
        self, rows: pl.DataFrame, columns: Sequence[str], what: str, *, hint: str | None = None
    ) -> pl.DataFrame:
        """Return the rows that have values to draw after checking that there are any."""
        known = rows.drop_nulls(columns)
        if known.is_empty():
            raise DataError(
                f"{self.where} has no {what}: null in all {rows.height} rows. Hint: {hint or self.hint}"
            )
        return known

    def refuse_unknown(self, rows: pl.DataFrame, quantity: str) -> DataError:
        """Build the error for a curve without any value, which says why."""
        hint = "without gold answers, tts.build_report(trajectories) draws the agreement instead."
        if rows["n_short"].fill_null(0).max():
            hint = "name smaller budgets, or average with include='available'."
        return DataError(
            f"{self.where} has no {quantity}: null in all {rows.height} rows "
            f"({explain_missing(rows)}). Hint: {hint}"
        )

    def check_budgets(self, rows: pl.DataFrame) -> None:
        """Check that every budget has a position on the axis, whose scale is logarithmic."""
        if (rows["budget"].drop_nulls() <= 0).any():
            raise DataError(
                f"{self.where} has budgets down to {rows['budget'].min()!r}, must be above 0 because "
                "the axis is logarithmic. Hint: filter out the rows that cost nothing."
            )

    def add_panels(self, rows: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
        """Add the column `panel`: the text of those columns that vary, empty where none does."""
        varying = [name for name in names if rows[name].n_unique() > 1]
        # The name of a run speaks for itself, the number of a level or seed does not.
        is_plain = len(varying) == 1 and not rows[varying[0]].dtype.is_numeric()
        texts = [
            pl.concat_str(pl.lit("" if is_plain else f"{name}: "), name_values(rows[name]))
            for name in varying
        ]
        panel = pl.concat_str(texts, separator=" · ") if texts else pl.lit("")
        rows = rows.with_columns(panel.alias("panel"))
        n_panels = rows["panel"].n_unique()
        if n_panels > _N_PANELS_MAX:
            raise DataError(
                f"{self.where} has {n_panels} groups of {varying}, a chart holds at most "
                f"{_N_PANELS_MAX}. Hint: filter the table to the groups to compare."
            )
        return rows

    def thin_lines(
        self,
        rows: pl.DataFrame,
        *,
        panel: Sequence[str] = ("panel",),
        line: Sequence[str] = ("line",),
        n_max: int = _N_BUDGETS_MAX,
        keep: pl.Expr | None = None,
    ) -> pl.DataFrame:
        """Keep as many points of each line as fit on a page, evenly on the log scale."""
        # Each line by itself: budgets that are costs differ from line to line.
        of_line = [*panel, *line]
        lines = rows.select(of_line).unique()
        n_in_panel = int(lines.group_by(panel).len()["len"].max() or 0)  # type: ignore[arg-type]
        self.check_at_most(n_in_panel, _N_LINES_MAX, "lines in a panel")
        self.check_at_most(lines.height, _N_POINTS_MAX // _N_BUDGETS_MIN, "lines")
        n_kept = min(n_max, max(_N_POINTS_MAX // max(lines.height, 1), _N_BUDGETS_MIN))
        budget = pl.col("budget").cast(pl.Float64)
        first, last = budget.min().over(of_line), budget.max().over(of_line)
        is_kept = pl.len().over(of_line) <= n_kept
        if keep is not None:
            is_kept |= keep
        position = (budget / first).log() / (last / first).log() * (n_kept - 1)
        numbered = rows.with_row_index("row_number")
        nearest = (
            numbered
            .filter(~is_kept)
            .with_columns(step=position.round(), distance=(position - position.round()).abs())
            .sort("distance", "budget")
            .unique([*of_line, "step"], keep="first")
        )
        is_nearest = pl.col("row_number").is_in(nearest["row_number"].to_list())
        return numbered.filter(is_kept | is_nearest).drop("row_number")


def name_interval(confidence_level: float | None) -> str:
    """Check a confidence level, and name the interval that has it."""
    if confidence_level is None:
        return "confidence interval"
    check_fraction(confidence_level, "confidence_level")
    return f"{100 * confidence_level:g}% confidence interval"


def find_run_columns(rows: pl.DataFrame, known: Collection[str]) -> list[str]:
    """Return the columns that are not part of a table's contract: they tell runs apart."""
    return [name for name in rows.columns if name not in {*known, *CLUSTER_COLUMNS}]


def name_values(column: pl.Series) -> pl.Series:
    """Write the values of a column that tells runs apart; of paths, the part in which they differ."""
    texts = column.cast(pl.String)
    short = shorten_paths(texts.drop_nulls().unique().sort().to_list())
    return texts.replace(short).fill_null("none")


def shorten_distinctly(names: Sequence[str], width: int) -> list[str]:
    """Shorten names to one line of at most `width` characters, numbered where they become alike."""
    labels = [shorten(name, width) for name in names]
    alike = Counter(labels)
    seen: Counter[str] = Counter()
    for i, label in enumerate(labels):
        if alike[label] > 1:
            seen[label] += 1
            labels[i] = f"{label} ({seen[label]})"
    return labels


def shorten_names(rows: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Shorten the texts that name lines or bars, and keep them apart."""
    for column in columns:
        names = rows[column].cast(pl.String).drop_nulls().unique().sort().to_list()
        short = dict(zip(names, shorten_distinctly(names, _NAME_WIDTH), strict=True))
        rows = rows.with_columns(pl.col(column).cast(pl.String).replace(short))
    return rows


def space_words(name: str) -> pl.Expr:
    """Write a column of names with spaces for underscores."""
    return pl.col(name).cast(pl.String).str.replace_all("_", " ", literal=True)


def add_line_names(rows: pl.DataFrame, *, show_reduction: bool) -> pl.DataFrame:
    """Add as text each line's name, interval, scores, budget, and what it leaves out."""
    reduction = pl.concat_str(pl.lit(" ("), pl.col("reduction"), pl.lit(")")).fill_null("")
    name = space_words("selector")
    is_cost = rows["budget"].dtype.is_float()
    budget = pl.col("budget").round_sig_figs(6) if is_cost else pl.col("budget")
    return rows.with_columns(
        line=pl.concat_str(name, reduction) if show_reduction else name,
        interval=interval().fill_null("unknown"),
        left_out=left_out(),
        reads=pl.col("reduction").fill_null("no score"),
        of_budget=budget.cast(pl.String).fill_null("all"),
        budget=pl.col("budget").fill_null(1),
    )


def count_problems(rows: pl.DataFrame) -> str:
    """Write how many problems the rows average; empty where they do not say."""
    counts = rows["n_problems"].drop_nulls().to_list()
    return counted(counts, "problem") if counts else ""


def has_interval(rows: pl.DataFrame) -> bool:
    """Return whether any row has an interval."""
    return rows["ci_low"].null_count() < rows.height


def describe_left_out(rows: pl.DataFrame, begin: str = "Left out: ") -> str:
    """Write how many problems the rows leave out and why; empty where none."""
    counts = {status: rows[f"n_{status}"].fill_null(0).to_list() for status in LEFT_OUT}
    texts = [
        f"{counted(numbers, 'problem')} {_STATUSES[status]}"
        for status, numbers in counts.items()
        if max(numbers) > 0
    ]
    return f"{begin}{', '.join(texts)}" if texts else ""


def describe_few_problems(rows: pl.DataFrame) -> str:
    """Say where fewer than half of the problems are averaged."""
    is_known = set(rows.columns) >= {"n_problems", *(f"n_{status}" for status in LEFT_OUT)}
    if not is_known or rows.filter(is_minority()).is_empty():
        return ""
    where = "" if rows.select(is_minority().all()).item() else " in some points"
    return f"Averaged over fewer than half of the problems{where}"


def explain_missing(rows: pl.DataFrame) -> str:
    """Say why rows have no value: the reasons for which they leave problems out."""
    reasons = [
        f"{counted(numbers, 'problem')} {_STATUSES[status]}"
        for status in LEFT_OUT
        if max(numbers := [n for n in rows[f"n_{status}"].fill_null(0).to_list() if n], default=0)
    ]
    return ", ".join(reasons) or "no problem is averaged"


def describe_undrawn(rows: pl.DataFrame, quantity: str = "accuracy") -> str:
    """Name the runs, lines and budgets that have no value, and say why."""
    unknown = pl.col(quantity).is_null()
    rows = rows.with_columns(
        is_undrawn_everywhere=unknown.all().over("budget"),
        is_undrawn_panel=unknown.all().over("panel"),
        is_undrawn_line=unknown.all().over("panel", "line"),
        is_undrawn_budget=unknown.all().over("panel", "budget"),
    ).filter(unknown)
    unit = str(rows["budget_unit"][0]) if rows.height else ""
    where = pl.when(pl.col("panel") != "").then(pl.format(" ({})", "panel")).otherwise(pl.lit(""))
    named = rows.with_columns(
        what=pl
        .when("is_undrawn_everywhere")
        .then(pl.format("budget {} {}", "of_budget", pl.lit(unit)))
        .when("is_undrawn_panel")
        .then("panel")
        .when("is_undrawn_line")
        .then(pl.concat_str("line", where))
        .when("is_undrawn_budget")
        .then(pl.concat_str(pl.lit("budget "), pl.col("of_budget"), pl.lit(f" {unit}"), where))
        .otherwise(pl.concat_str("line", pl.lit(" at "), "of_budget", pl.lit(f" {unit}"), where))
    )
    texts = [
        f"{name or 'the curve'} ({explain_missing(part)})"
        for (name,), part in named.partition_by("what", as_dict=True, maintain_order=True).items()
    ]
    if not texts:
        return ""
    more = f" and {len(texts) - _N_NAMED_MAX} more" if len(texts) > _N_NAMED_MAX else ""
    return f"Not drawn: {', '.join(texts[:_N_NAMED_MAX])}{more}"


def describe_undrawn_budgets(rows: pl.DataFrame, quantity: str = "accuracy") -> str:
    """Name the budgets at which nothing has a value, and say why."""
    return describe_undrawn(rows.filter(pl.col(quantity).is_null().all().over("budget")), quantity)


def describe_undrawn_panels(rows: pl.DataFrame, drawn: pl.DataFrame, why: str) -> str:
    """Name the panels of a table that have nothing to draw, and say why."""
    shown = set(drawn["panel"])
    names = [name for name in rows["panel"].unique(maintain_order=True) if name not in shown]
    more = f" and {len(names) - _N_NAMED_MAX} more" if len(names) > _N_NAMED_MAX else ""
    return f"Not drawn: {', '.join(names[:_N_NAMED_MAX])}{more} ({why})" if names else ""


def sort_levels(levels: pl.Series) -> list[Any]:
    """Return levels in their order: numbers, texts that end in a number, then others by name."""
    known = levels.drop_nulls().unique()
    if known.dtype.is_numeric():
        ordered = known.sort().to_list()
    else:
        texts = known.cast(pl.String)
        number = texts.str.extract(r"(\d{1,9})\s*$").cast(pl.Int64)
        ordered = (
            pl
            .DataFrame({"text": texts, "number": number})
            .sort("number", "text", nulls_last=True)["text"]
            .to_list()
        )
    return [*ordered, None] if levels.null_count() else ordered


def name_level(level: float | str | None) -> str:
    """Return the name of a level; a text is its own."""
    if level is None:
        return "Unknown"
    return level if isinstance(level, str) else f"Level {level:g}"


def name_level_column(level: str) -> str:
    """Name what the levels are."""
    return "level of difficulty" if level == "level" else level.replace("_", " ")


def hardest_last(table: pl.DataFrame) -> str:
    """Say that the last level is the hardest, if the levels are numbers of difficulty_levels."""
    is_known = table["level"].dtype.is_numeric() and "basis" in table.columns
    return ", hardest last" if is_known else ""


def describe_levels(rows: pl.DataFrame) -> list[str]:
    """Write what levels were estimated on, and how far to trust them."""
    bases, caveats = (
        set(rows[name]) if name in rows.columns else set() for name in ("basis", "caveat")
    )
    doubts = [f"some problems {text}" for name, text in LEVEL_CAVEATS.items() if name in caveats]
    return [*[text for name, text in LEVEL_BASES.items() if name in bases], *doubts]


def inline(rows: pl.DataFrame) -> alt.InlineData:
    """Put rows into the chart itself, independent of Altair's row limit and transformers."""
    # Twelve digits: the last bits of a sum depend on its order, and a chart should not.
    values = rows.with_columns(
        selectors.float().round_sig_figs(12),
        # JSON has no such values; they only name runs.
        (selectors.date() | selectors.datetime() | selectors.time() | selectors.decimal()).cast(
            pl.String
        ),
    ).to_dicts()
    # A tuple, which Altair does not copy deeply each time that a layer or panel is put together.
    return alt.InlineData(values=tuple(values))


def inline_marks(rows: pl.DataFrame) -> alt.InlineData:
    """Put rows into the chart without the columns that no mark and no tooltip shows."""
    return inline(rows.drop(_UNDRAWN, strict=False))
