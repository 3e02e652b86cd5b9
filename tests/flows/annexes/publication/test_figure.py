"""The figure of a paper: regret over rounds or against privacy."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import bandana
from bandana.flows.annexes.publication.latex import escaped

PRIVATE, TWIN = "adar-ucb tight eps=1", "adar-ucb tight eps=1 without noise"
TITLE = "adar-ucb tight rdp(2, 1)"
ENDINGS = ("pdf", "svg", "png", "pgf")


@pytest.mark.parametrize("named", [{"cells": ["tight"]}, {"labels": {"tight": "x"}}])
def test_an_unknown_cell_is_answered_with_the_known_ones(result, named):
    with pytest.raises(bandana.SpecError, match="unknown cell 'tight'"):
        result.plot(**named)


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
    assert [text.get_text() for text in axes.figure.legends[0].get_texts()] == ["not private", TITLE]


def test_a_cell_is_drawn_by_its_title_too(result):
    (axes,) = result.plot(cells=["ucb", TITLE], labels={TITLE: "mine"}).axes
    assert axes.get_legend_handles_labels()[1] == ["ucb", "mine"]
    assert result.plot(cells=[PRIVATE]).axes[0].get_legend_handles_labels()[1] == [TITLE]


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
    result = bandana.run(spec, data=tmp_path)
    figure = result.plot(tmp_path / "two.pgf")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["easy_1", "hard"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["ucb", "uniform play", "greedy"]
    assert r"easy\_1}" in (tmp_path / "two.pgf").read_text()
    with pytest.raises(bandana.SpecError, match="plays on easy_1 and 'ucb on hard' on hard: only cells on one"):
        result.compare("ucb on easy_1", "ucb on hard")


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


@pytest.fixture(scope="module")
def levels(tmp_path_factory):
    """Two algorithms at three levels, on two environments."""
    arms = [{"kind": "bernoulli", "means": [0.8, 0.4], "label": name} for name in ("easy", "same")]
    private = {"algorithm": "adar-ucb", "calibrations": "tight", "privacy": {"alpha": 2, "epsilon": [0.1, 1, 10]}}
    spec = {"name": "levels", "seed": 1, "environment": arms, "horizon": 200, "replications": 5,
            "algorithms": [private, {"algorithm": "ucb"}]}  # fmt: skip
    return bandana.run(spec, data=tmp_path_factory.mktemp("data"), executor="local")


def test_regret_against_privacy_is_a_line_for_each_family(levels):
    one = [name for name in levels.names if name.endswith("on easy")]
    figure = levels.plot(x="mu", cells=one, labels={one[0]: "mine"})
    table = levels.frame(cells=one).set_index("cell")
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    assert list(lines) == ["mine", "ucb", "the same without noise", "uniform play", "greedy"]  # as the cells are
    np.testing.assert_allclose(lines["mine"].get_xdata(), table.mu_claimed[:3])
    np.testing.assert_allclose(lines["mine"].get_ydata(), table.regret[:3])
    noiseless = [f"{name.removesuffix(' on easy')} without noise on easy" for name in one[:3]]
    np.testing.assert_allclose(lines["the same without noise"].get_ydata(), table.regret[noiseless])
    assert lines["ucb"].get_ydata().tolist() == [table.regret["ucb on easy"]] * 2
    by_epsilon = levels.plot(x="epsilon", cells=one).axes[0]
    np.testing.assert_allclose(by_epsilon.lines[0].get_xdata(), table.epsilon_claimed[:3])
    assert by_epsilon.get_xlabel() == "ε claimed at δ = 1e-05 (log scale)"
    with pytest.raises(bandana.SpecError, match="x: no cell to draw is private with a finite claim"):
        levels.plot(x="mu", cells=["ucb on easy"])


@pytest.mark.parametrize("columns", [1, 2])
def test_panels_below_or_beside_each_other(levels, columns):
    figure = levels.plot(columns=columns)
    figure.canvas.draw()
    first, second = (axes.get_position() for axes in figure.axes)
    assert (first.y0 > second.y1) == (columns == 1)
    assert (first.x1 < second.x0) == (columns == 2)


def test_bands_of_quantiles_are_those_of_the_replications(result):
    (axes,) = result.plot(band="quantiles", cells=["ucb"]).axes
    played = result.curves(replicates=True)
    played = played[played.cell == "ucb"].pivot(index="replication", columns="round", values="regret")
    low, middle, high = np.quantile(played.to_numpy(), [0.1, 0.5, 0.9], axis=0)
    np.testing.assert_allclose(axes.lines[0].get_ydata(), middle)
    corners = axes.collections[0].get_paths()[0].vertices
    assert (corners[:, 1].min(), corners[:, 1].max()) == pytest.approx((low.min(), high.max()))


def test_lower_bounds_are_dotted_and_stand_once_in_the_legend(result):
    figure = result.plot(lower_bound=True)
    dotted = [line for line in figure.axes[0].lines if line.get_label() == "lower bound"]
    known = {cell.name: cell.lower_bound(np.array([300])) for cell in result.cells}
    ends = [float(bound.values[-1]) for bound in known.values() if bound is not None]
    assert ends
    assert [line.get_ydata()[-1] for line in dotted] == pytest.approx(ends)
    assert [text.get_text() for text in figure.legends[0].get_texts()].count("lower bound") == 1
    with pytest.raises(bandana.SpecError, match="lower_bound: none is known for these cells"):
        result.plot(lower_bound=True, cells=["greedy"])


def test_axes_of_ones_own_keep_their_figure_and_the_legend_its_order(result, levels):
    ax = Figure().subplots()
    assert result.plot(ax=ax, sort="-regret") is ax.figure
    assert not ax.figure.legends
    drawn = [line.get_label() for line in ax.lines]
    shown = {PRIVATE: "adar-ucb tight rdp(2, 1)", TWIN: "the same without noise"}
    assert drawn == [shown.get(name, name) for name in result.frame(sort="-regret").cell]
    with pytest.raises(bandana.SpecError, match="ax: has room for one environment, got easy, same"):
        levels.plot(ax=ax)


def test_latex_sets_a_text_as_it_is():
    assert escaped("100 % of a_b # {x} ~ ^") == r"100 \% of a\_b \# \{x\} \textasciitilde{} \textasciicircum{}"
    assert escaped("ε = −1.2 × 10⁻⁵") == (
        r"\ensuremath{\varepsilon} = \ensuremath{-}1.2 \ensuremath{\times} 10\textsuperscript{--}\textsuperscript{5}"
    )
