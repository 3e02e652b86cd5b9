"""The numbers of a result: tables, paired differences and the figure."""

import numpy as np
import pytest

import bandana
from bandana.audits.reporting.intervals import mean_interval, paired_interval
from bandana.flows.api.latex_table import escaped

PRIVATE, TWIN = "adar-ucb tight eps=1", "adar-ucb tight eps=1 without noise"
ENDINGS = ("pdf", "svg", "png", "pgf")


def test_a_row_for_each_cell(result):
    frame = result.frame().set_index("cell")
    assert list(frame.index) == result.names == ["ucb", PRIVATE, TWIN, "uniform play", "greedy"]
    assert list(frame.role) == ["algorithm", "algorithm", "twin", "reference", "reference"]
    assert frame.loc[TWIN, "epsilon"] != frame.loc[TWIN, "epsilon"]  # missing: a twin is not private
    assert frame.loc[PRIVATE, "twin_of"] is None or frame.loc[PRIVATE].isna()["twin_of"]
    assert frame.loc[TWIN, "twin_of"] == PRIVATE
    assert frame.loc[PRIVATE, "epsilon"] == 1
    private = frame.loc[PRIVATE]
    assert private.mu_claimed == pytest.approx(1, rel=1e-12)
    assert private.mu_claimed * (1 + 1e-9) >= private.mu_accounted > 0
    assert private.verdict in ("PASS", "FAIL", "INCONCLUSIVE", "NOT REFUTED")
    assert private.epsilon_claimed == pytest.approx(4.377, abs=1e-3)
    assert frame.mu_claimed.notna().sum() == 1
    shown = frame[frame.role != "reference"]
    assert (shown.regret_low <= shown.regret).all()
    assert (shown.regret <= shown.regret_high).all()


def test_curves_are_the_means_of_their_replicates(result):
    curves, replicates = result.curves(), result.curves(replicates=True)
    for cell in result.names:
        grid = curves[curves.cell == cell]
        played = replicates[replicates.cell == cell].pivot(index="replication", columns="round", values="regret")
        assert len(played) == 6
        assert list(played.columns) == list(grid["round"])
        mean, low, high = mean_interval(played.to_numpy())
        for name, values in (("regret", mean), ("low", low), ("high", high)):
            np.testing.assert_allclose(grid[name], values, rtol=1e-12)
    assert curves[curves.cell == PRIVATE].mu_spent.is_monotonic_increasing
    assert curves[curves.cell == "ucb"].mu_spent.isna().all()


def test_a_comparison_is_paired(result):
    replicates = result.curves(replicates=True)
    last = replicates[replicates["round"] == 300].pivot(index="replication", columns="cell", values="regret")
    found = result.compare(PRIVATE, "ucb")
    expected = paired_interval(last[PRIVATE], last["ucb"])
    assert (found.mean, found.low, found.high) == pytest.approx(tuple(expected), rel=1e-12)
    assert found.replications == 6
    assert found.is_resolved == (not found.low <= 0 <= found.high)
    assert str(found).startswith(f"{PRIVATE} minus ucb: ")
    listed = result.comparisons()
    noise = listed[listed.kind == "noise"].iloc[0]
    assert (noise.cell, noise.other) == (PRIVATE, TWIN)
    assert noise["mean"] == pytest.approx(result.compare(PRIVATE, TWIN).mean, rel=1e-12)


def test_an_unknown_cell_is_answered_with_the_known_ones(result):
    for ask in (lambda: result.compare("ucb", "adar-ucb tight eps=2"), lambda: result.plot(cells=["adar-ucb tight eps=2"])):
        with pytest.raises(bandana.SpecError, match=r"^unknown cell '.*=2'; did you mean 'adar-ucb .*'\? `names` shows all"):
            ask()
    with pytest.raises(bandana.SpecError, match="unknown cell 'tight'"):
        result.plot(labels={"tight": "x"})


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_figure_is_saved_and_the_same_each_time(result, tmp_path, ending):
    first, second = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
    figure = result.plot(first)
    result.plot(second)
    assert first.read_bytes() == second.read_bytes()
    assert figure.get_figwidth() == 3.4


def test_a_pgf_figure_is_written_without_latex(result, tmp_path, monkeypatch):
    """Matplotlib measures texts by LaTeX, which is nowhere here; ours must take its place in every version of Matplotlib."""
    monkeypatch.setenv("PATH", str(tmp_path))
    result.plot(tmp_path / "a.pgf", cells=[PRIVATE], labels={PRIVATE: "50 % of_x"})
    text = (tmp_path / "a.pgf").read_text()
    assert r"50 \% of\_x" in text
    assert text.count(r"\begin{pgfpicture}") == text.count(r"\end{pgfpicture}") == 1


def test_a_notebook_shows_the_figure(result):
    assert result.plot()._repr_png_().startswith(b"\x89PNG")


def test_the_figure_shows_every_cell_and_draws_no_two_lines_alike(result):
    (axes,) = result.plot().axes
    assert len(axes.lines) == len(axes.collections) == len(result.names)
    looks = {(line.get_marker(), line.get_markerfacecolor(), str(line._dash_pattern)) for line in axes.lines}
    assert len(looks) == len(result.names)  # by marker and dash alone, as print in gray shows them
    dashed = [line for line in axes.lines if line.get_marker() == "None"]
    assert len(dashed) == 2
    assert all(line.get_linestyle() == "--" for line in dashed)


def test_linear_axes_show_every_listed_algorithm_whole(result):
    (axes,) = result.plot().axes
    frame = result.frame()
    assert axes.get_ylim()[1] >= frame[frame.role == "algorithm"].regret_high.max()
    (axes,) = result.plot(scale="log", cells=["ucb", PRIVATE], labels={"ucb": "not private"}).axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert [text.get_text() for text in axes.figure.legends[0].get_texts()] == ["not private", PRIVATE]


def test_a_panel_for_each_environment(tmp_path):
    arms = [{"kind": "bernoulli", "means": [0.8, 0.4], "label": name} for name in ("easy_1", "hard")]
    spec = {
        "name": "two",
        "seed": 1,
        "environment": arms,
        "horizon": 100,
        "replications": 3,
        "algorithms": [{"algorithm": "ucb"}],
    }
    found = bandana.run(spec, data=tmp_path)
    figure = found.plot(tmp_path / "two.pgf")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["easy_1", "hard"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["ucb", "uniform play", "greedy"]
    assert r"easy\_1}" in (tmp_path / "two.pgf").read_text()
    with pytest.raises(bandana.SpecError, match="plays on easy_1 and 'ucb on hard' on hard: only cells on one"):
        found.compare("ucb on easy_1", "ucb on hard")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"path": "x.jpg"}, "path: must end in .pdf, .svg, .png or .pgf, got 'x.jpg'"),
        ({"scale": "loglog"}, "scale: must be 'linear' or 'log', got 'loglog'"),
        ({"width": 0}, "width: must be positive, in inches, got 0"),
        ({"cells": []}, "there is nothing to draw"),
    ],
)
def test_a_mistake_in_a_plot_says_what_is_allowed(result, given, said):
    with pytest.raises(bandana.SpecError, match=said):
        result.plot(**given)


def test_regret_on_private_data_is_withheld_everywhere(tmp_path):
    (tmp_path / "t.csv").write_text("letter,call\n" + "".join(f"{i % 2},{(i // 2) % 2}\n" for i in range(40)))
    spec = {
        "name": "mine", "seed": 1, "environment": {"kind": "table", "path": str(tmp_path / "t.csv"), "low": 0, "high": 1},
        "horizon": 40, "replications": 2, "algorithms": [{"algorithm": "ucb"}], "audit": {"rounds": 8},
    }  # fmt: skip
    found = bandana.run(spec, data=tmp_path / "data")
    frame = found.frame()
    assert frame[["regret", "regret_low", "regret_high", "regret_q50"]].isna().all().all()
    assert (frame.caution == "regret is withheld: the data are private").all()
    assert found.curves().regret.isna().all()
    assert found.curves(replicates=True).empty
    assert found.comparisons().empty
    for ask in (found.plot, lambda: found.compare("ucb", found.names[-1])):
        with pytest.raises(bandana.SpecError, match="withheld"):
            ask()
    assert {path.name for path in found.export(tmp_path / "out")} >= {"cells.csv", "replicates.parquet", "table.tex"}
    assert "withheld" in (tmp_path / "out" / "table.tex").read_text()
    with pytest.raises(bandana.SpecError, match="withheld"):
        found.export(tmp_path / "out", "figure")


def test_logged_data_show_what_final_policies_are_worth(tmp_path):
    rows = "".join(f"{'call' if i % 2 else 'letter'},0.5,{int(i % 3 == 0 or i % 2)}\n" for i in range(120))
    (tmp_path / "log.csv").write_text(f"action,propensity,reward\n{rows}")
    environment = {"kind": "logged", "path": str(tmp_path / "log.csv"), "actions": ["letter", "call"], "low": 0, "high": 1}
    spec = {"name": "log", "seed": 1, "environment": {**environment, "public": ["regret"]}, "horizon": 60, "replications": 3,
            "algorithms": [{"algorithm": "ucb"}], "audit": {"rounds": 8}}  # fmt: skip
    frame = bandana.run(spec, data=tmp_path / "data").frame().set_index("cell")
    for name in ("value_ips", "value_snips", "value_dr"):
        assert frame.loc["ucb", f"{name}_low"] <= frame.loc["ucb", name] <= frame.loc["ucb", f"{name}_high"]
    hidden = bandana.run({**spec, "environment": environment}, data=tmp_path / "data").frame()
    assert not [name for name in hidden if name.startswith("value_")]


def test_latex_sets_a_text_as_it_is():
    assert escaped("100 % of a_b # {x} ~ ^") == r"100 \% of a\_b \# \{x\} \textasciitilde{} \textasciicircum{}"
    assert escaped("ε = −1.2 × 10⁻⁵") == (
        r"\ensuremath{\varepsilon} = \ensuremath{-}1.2 \ensuremath{\times} 10\textsuperscript{--}\textsuperscript{5}"
    )
