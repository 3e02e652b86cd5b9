"""`bandana export`: what other programs and papers read."""

import re

import pandas as pd
import pytest
from small_spec import private_people
from typer.testing import CliRunner

import bandana
from bandana.flows.annexes.publication.latex_table import table
from bandana.flows.cli import app

FILES = {
    "csv": ["cells.csv", "curves.csv", "comparisons.csv"],
    "parquet": ["cells.parquet", "curves.parquet", "comparisons.parquet", "replicates.parquet"],
    "latex": ["table.tex"],
    "figure": ["regret.pdf", "regret.pgf", "regret.svg"],
}


def export(*words):
    return CliRunner().invoke(app, ["export", *map(str, words)])


def rows(latex):
    """Cells of every row of a LaTeX table."""
    return [re.split(r" *(?<!\\\\)& *", line.removesuffix(r" \\")) for line in latex.splitlines() if line.endswith(r" \\")]


@pytest.mark.parametrize("kind", FILES)
def test_a_format_is_written_alone(result, tmp_path, kind):
    done = export("small", f"--{kind}", "--data", result.folder.root, "--out", tmp_path)
    assert done.exit_code == 0, done.output
    assert done.output.split() == [str(tmp_path / name) for name in FILES[kind]]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(FILES[kind])


def test_without_a_format_all_are_written_beside_the_report(result):
    done = export("small", "--data", result.folder.root)
    assert done.exit_code == 0, done.output
    written = {path.name for path in (result.folder.suite("small") / "export").iterdir()}
    assert written == {name for names in FILES.values() for name in names}


def test_tables_are_those_of_the_result(result, tmp_path):
    result.export(tmp_path, "csv", "parquet")
    for name, expected in (("cells", result.frame()), ("curves", result.curves()), ("comparisons", result.comparisons())):
        for written in (pd.read_csv(tmp_path / f"{name}.csv"), pd.read_parquet(tmp_path / f"{name}.parquet")):
            assert list(written.columns) == list(expected.columns)
            for column in expected.select_dtypes("number"):
                pd.testing.assert_series_equal(written[column], expected[column], check_dtype=False, rtol=1e-12)
    assert len(pd.read_parquet(tmp_path / "replicates.parquet")) == len(result.curves(replicates=True))


def test_the_latex_table_has_the_numbers_of_the_frame(result, tmp_path):
    (place,) = result.export(tmp_path, "latex")
    text = place.read_text()
    assert text.startswith("% A small experiment: regret after 300 rounds, 6 replications, seed 7.\n")
    assert [text.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1, 1, 1]
    head, *body = rows(text)[1:]
    assert head == ["Algorithm", "Regret", r"95\,\% interval", "claimed", "accounted", "measured", "Audit"]
    assert [row[0] for row in body] == [cell.title for cell in result.cells]
    assert all(len(row) == len(head) for row in body)
    for row, (_, cell) in zip(body, result.frame().iterrows(), strict=True):
        shown = float(row[1].strip("$").replace("{,}", ""))
        assert shown == pytest.approx(cell.regret, abs=max(0.06 * (cell.regret_high - cell.regret_low), 1e-3 * cell.regret))
    private = body[result.names.index("adar-ucb tight eps=1")]
    assert private[3] == "4.377"
    assert private[6] == result.frame().set_index("cell").verdict["adar-ucb tight eps=1"]


def test_the_latex_table_groups_environments_and_escapes_names():
    cells = {"environment": ["a_1", "b"], "cell": ["ucb on a_1", "[ucb] on b"], "replications": 3, "verdict": None}
    numbers = {"regret": [1234.56, -0.5], "regret_low": [1200.0, -1.0], "regret_high": [1270.0, 0.0], "delta": float("nan")}
    privacy = dict.fromkeys(("epsilon_claimed", "epsilon_accounted", "epsilon_measured"), float("nan"))
    text = table(pd.DataFrame({**cells, **numbers, **privacy}), "two")
    assert rows(text) == [
        ["Algorithm", "Regret", r"95\,\% interval"],
        [r"\multicolumn{3}{l}{\emph{a\_1}}"],
        ["ucb", "$1{,}235$", "[$1{,}200$, $1{,}270$]"],
        [r"\multicolumn{3}{l}{\emph{b}}"],
        ["{[ucb]}", "$-0.50$", "[$-1.00$, $0.00$]"],
    ]


@pytest.mark.parametrize("half", [0.0, 1.4e-14])
def test_an_interval_of_rounding_errors_is_none(half):
    """Uniform play has the same regret in each replication, whose mean may miss it by a last bit."""
    numbers = {"regret": 120.0 + half, "regret_low": 120.0, "regret_high": 120.0 + 2 * half, "delta": float("nan")}
    privacy = dict.fromkeys(("epsilon_claimed", "epsilon_accounted", "epsilon_measured"), float("nan"))
    cells = {"environment": "a", "cell": ["uniform play"], "replications": 3, "verdict": None}
    assert rows(table(pd.DataFrame({**cells, **numbers, **privacy}), "one"))[1:] == [["uniform play", "$120.0$", "--"]]


def test_cautions_are_footnotes_which_equal_ones_share():
    numbers = {"regret": [10.0, 20.0, 30.0], "regret_low": 9.0, "regret_high": 41.0, "delta": float("nan")}
    privacy = dict.fromkeys(("epsilon_claimed", "epsilon_accounted", "epsilon_measured"), float("nan"))
    cells = {"environment": "a", "cell": ["x", "y", "z"], "replications": 3, "verdict": None}
    text = table(pd.DataFrame({**cells, **numbers, **privacy, "caution": ["50 % of it", None, "50 % of it"]}), "one")
    assert [row[2].endswith(r"]\tnote{a}") for row in rows(text)[1:]] == [True, False, True]
    assert text.splitlines()[1] == r"% Needs \usepackage{booktabs,threeparttable}."
    assert text.splitlines()[-4:] == [
        r"\begin{tablenotes}\footnotesize", r"\item[a] 50 \% of it", r"\end{tablenotes}", r"\end{threeparttable}"
    ]  # fmt: skip


def test_cells_labels_and_order_hold_in_all_files(result, tmp_path):
    chosen, labels = ["greedy", "ucb", "adar-ucb tight eps=1"], {"ucb": "UCB 100"}
    result.export(tmp_path, cells=chosen, labels=labels)
    frames = {name: pd.read_csv(tmp_path / f"{name}.csv") for name in ("cells", "curves", "comparisons")}
    assert list(frames["cells"].cell) == list(frames["curves"].cell.unique()) == chosen
    assert list(frames["cells"].cell_label) == ["greedy", "UCB 100", "adar-ucb tight eps=1"]
    pairs = result.comparisons()
    kept = pairs[pairs.cell.isin(chosen) & pairs.other.isin(chosen)]
    assert len(frames["comparisons"]) == len(kept) > 0
    assert "other_label" in frames["comparisons"]
    assert set(pd.read_parquet(tmp_path / "replicates.parquet").cell) == set(chosen)
    names = [row[0] for row in rows((tmp_path / "table.tex").read_text())[2:]]
    assert names == ["greedy", "UCB 100", "adar-ucb tight rdp(2, 1)"]
    result.export(tmp_path, "csv", sort="-regret")
    assert list(pd.read_csv(tmp_path / "cells.csv").regret) == sorted(result.frame().regret, reverse=True)
    with pytest.raises(bandana.SpecError, match="unknown cell 'ucbb'; did you mean 'ucb'"):
        result.export(tmp_path, "latex", labels={"ucbb": "UCB"})


def test_the_command_takes_cells_labels_and_order_as_python_does(result, tmp_path):
    where = ("small", "--csv", "--latex", "--data", result.folder.root, "--out", tmp_path / "typed")
    cells = ("--cells", "greedy", "--cells", "adar-ucb tight rdp(2, 1)", "--cells", "ucb")
    labels = {"ucb": "UCB (x = 1)", "adar-ucb tight eps=1": "mine"}
    typed = [word for name, label in labels.items() for word in ("--labels", f"{name}={label}")]
    done = export(*where, *cells, *typed, "--sort", "-regret")
    assert done.exit_code == 0, done.output
    result.export(tmp_path, "csv", "latex", cells=["greedy", "adar-ucb tight eps=1", "ucb"], labels=labels, sort="-regret")
    for name in [*FILES["csv"], *FILES["latex"]]:
        assert (tmp_path / "typed" / name).read_bytes() == (tmp_path / name).read_bytes()
    for words, message in (
        (("--cells", "ucbb"), "unknown cell 'ucbb'; did you mean 'ucb'"),
        (("--labels", "ucbb=UCB"), "unknown cell 'ucbb'; did you mean 'ucb'"),
        (("--labels", "ucb"), "--labels: must be CELL=NAME, got 'ucb'"),
        (("--sort", "regrets"), "unknown column 'regrets'; did you mean 'regret'"),
    ):
        wrong = export(*where, *words)
        assert wrong.exit_code == 2
        assert message in wrong.output


def test_a_suite_that_is_not_finished_is_refused(result, tmp_path):
    done = export("smal", "--data", result.folder.root)
    assert done.exit_code == 2
    assert "has no suite 'smal'; it has: small" in done.output
    with pytest.raises(bandana.SpecError, match="export: must be among csv, parquet, latex, figure, got 'excel'"):
        result.export(tmp_path, "excel")


def test_a_suite_is_named_by_its_spec_too(result, tmp_path):
    spec = result.folder.suite("small") / "spec.yaml"
    assert export(spec, "--latex", "--data", result.folder.root, "--out", tmp_path).exit_code == 0


def test_regret_on_private_data_is_withheld_from_tables_and_figures(tmp_path):
    result = bandana.run(private_people(tmp_path), data=tmp_path / "data")
    assert {path.name for path in result.export(tmp_path / "out")} >= {"cells.csv", "replicates.parquet", "table.tex"}
    assert r"withheld\tnote{a}" in (tmp_path / "out" / "table.tex").read_text()
    for ask in (result.plot, lambda: result.export(tmp_path / "out", "figure")):
        with pytest.raises(bandana.SpecError, match="withheld"):
            ask()
