"""The section of a report on searches, and how the command finds their trees."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

import ttsframe as tts
from ttsframe.cli import cli
from ttsframe.errors import ColumnsError
from ttsframe.report import Report

S = tts.search
KEYS = ["policy", "width", "seed"]


@pytest.fixture(scope="module")
def searched() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return nodes and solutions of two policies, at two widths and seeds."""
    problems, generator, prm = S.simulate(12, seed=0)
    trees, solutions = [], []
    for make in (S.Beam, S.BestOfN):
        for width in (4, 8):
            for seed in (0, 1):
                policy = make(width)
                run = {"policy": policy.name, "width": width, "seed": seed}
                label = [pl.lit(value).alias(name) for name, value in run.items()]
                nodes = S.search(problems, generator, prm, policy, seed=seed)
                found = S.to_trajectories(nodes, policy=policy, problems=problems)
                trees.append(nodes.with_columns(label))
                solutions.append(found.with_columns(label))
    return pl.concat(trees), pl.concat(solutions)


@pytest.fixture(scope="module")
def report(searched: tuple[pl.DataFrame, pl.DataFrame]) -> Report:
    nodes, solutions = searched
    return tts.build_report(
        solutions, nodes=nodes, by=["policy", "width"], replicates="seed", sections="search"
    )


def test_costs_and_accuracy_are_those_of_plain_python(
    searched: tuple[pl.DataFrame, pl.DataFrame], report: Report
) -> None:
    nodes, solutions = searched
    assert report.search is not None
    rows = report.search.filter(selector="best_of_n")
    assert rows.height == 4
    scored = tts.score_trajectories(solutions)
    for row in rows.to_dicts():
        tree = nodes.filter(policy=row["policy"], width=row["width"])
        dropped = tree.filter(~pl.col("is_kept"))["n_tokens"].sum()
        assert row["tokens"] == pytest.approx(tree["n_tokens"].sum() / 24)
        assert row["steps"] == pytest.approx(tree.height / 24)
        assert row["share_dropped"] == pytest.approx(dropped / tree["n_tokens"].sum())
        right = []
        for seed in (0, 1):
            for problem in scored["problem_id"].unique():
                ends = scored.filter(
                    policy=row["policy"], width=row["width"], seed=seed, problem_id=problem
                ).sort("attempt")
                last = ends["step_scores"].list.last().to_list()
                right.append(ends["is_correct"][last.index(max(last))])
        assert row["accuracy"] == pytest.approx(sum(right) / len(right))


def test_each_search_is_one_budget_and_independent_solutions_have_smaller_ones(
    report: Report,
) -> None:
    assert report.curve is not None
    curve = report.curve.filter(selector="best_of_n")
    budgets = {
        (policy, width): sorted(rows["budget"])
        for (policy, width), rows in curve.partition_by("policy", "width", as_dict=True).items()
    }
    assert budgets == {
        ("beam", 4): [4],
        ("beam", 8): [8],
        ("best_of_n", 4): [1, 2, 4],
        ("best_of_n", 8): [1, 2, 4, 8],
    }
    assert report.search is not None
    both = report.search.filter(selector="best_of_n").join(
        curve.filter(pl.col("budget") == pl.col("width")), on=["policy", "width"]
    )
    assert both["accuracy"].to_list() == pytest.approx(both["accuracy_right"].to_list())


def test_seeds_are_averaged_and_are_no_problems(report: Report) -> None:
    assert report.search_width is not None
    assert report.search_width["n_problems"].to_numpy().max() == 12


def test_the_tree_is_one_of_a_search_that_dropped_steps(report: Report) -> None:
    tree = report.search_tree
    assert tree is not None
    assert tree.select(*KEYS, "problem_id").n_unique() == 1
    assert tree["policy"][0] == "beam"
    assert tree["is_correct"].drop_nulls().len() > 0


def test_the_page_has_the_section_with_its_charts_and_answers(report: Report) -> None:
    page = report.to_html()
    assert "What did the searches keep, and what did it cost?" in page
    assert "One search as an example: policy beam, width" in page
    answers = report.answers()["search"]
    assert len(answers) == 4
    assert answers[0].startswith("beam, width 4: ")
    assert "first steps at depth 1" in answers[0]
    assert report.to_dict()["search"]


def test_a_run_without_trees_has_no_section_and_no_word_of_it(
    searched: tuple[pl.DataFrame, pl.DataFrame],
) -> None:
    plain = tts.build_report(searched[1], by=["policy", "width"], replicates="seed")
    assert plain.search is None
    assert "search" not in plain.omitted


def test_a_single_search_has_a_section_and_other_nodes_are_explained(
    searched: tuple[pl.DataFrame, pl.DataFrame],
) -> None:
    nodes, solutions = (table.filter(policy="beam", width=8, seed=0) for table in searched)
    made = tts.build_report(solutions, nodes=nodes, sections="search")
    assert made.search is not None
    assert made.search.columns[:2] == ["rounds", "steps"]
    assert "One search as an example." in made.to_html()
    other = tts.build_report(
        solutions.with_columns(model=pl.lit("a")), nodes=nodes, by="model", sections="search"
    )
    assert "lack the columns ['model']" in other.omitted["search"]
    with pytest.raises(ColumnsError, match="nodes"):
        tts.build_report(solutions, nodes=solutions)


def _write(folder: Path, nodes: pl.DataFrame, solutions: pl.DataFrame) -> None:
    folder.mkdir()
    nodes.write_parquet(folder / "nodes.parquet")
    solutions.write_parquet(folder / "trajectories.parquet")


@pytest.mark.parametrize("name", ["run", "run/trajectories.parquet"])
def test_the_command_finds_trees_in_a_folder_and_beside_a_table(
    searched: tuple[pl.DataFrame, pl.DataFrame],
    tmp_path: Path,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    _write(tmp_path / "run", *searched)
    result = CliRunner().invoke(cli, ["report", name, "--sections", "search", "-o", "page.html"])
    assert result.exit_code == 0, result.output
    assert "each policy and width is a run of its own, seeds are averaged" in result.stderr
    assert "What did the searches keep" in Path("page.html").read_text(encoding="utf-8")


def test_a_file_beside_that_is_no_tree_is_no_error(
    searched: tuple[pl.DataFrame, pl.DataFrame], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    solutions = searched[1].filter(policy="beam", width=4, seed=0).drop(KEYS)
    _write(tmp_path / "run", solutions.select("problem_id"), solutions)
    result = CliRunner().invoke(cli, ["report", "run/trajectories.parquet", "-o", "page.html"])
    assert result.exit_code == 0, result.output
    assert "What did the searches keep" not in Path("page.html").read_text(encoding="utf-8")
