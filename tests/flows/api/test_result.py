"""The numbers of a result: tables and paired differences."""

import re

import numpy as np
import pytest
from small_spec import private_people

import bandana
from bandana.audits.reporting.intervals import mean_interval, paired_interval

PRIVATE, TWIN = "adar-ucb tight eps=1", "adar-ucb tight eps=1 without noise"
TITLE = "adar-ucb tight rdp(2, 1)"


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


def test_a_notebook_shows_regret_and_privacy_of_each_cell(result):
    rows = [re.findall("<td>(.*?)</td>", row) for row in result._repr_html_().split("<tr>")[1:]]
    frame = result.frame()
    assert [row[0] for row in rows] == [cell.title for cell in result.cells]
    assert [row[1] for row in rows] == [f"{regret:.4g}" for regret in frame.regret]
    assert [row[0] for row in rows if str(frame.verdict[1]) in row] == [TITLE]


def test_curves_are_the_means_of_their_replicates(result):
    curves, replicates = result.curves(), result.curves(replicates=True)
    for cell in result.names:
        grid = curves[curves.cell == cell]
        played = replicates[replicates.cell == cell].pivot(index="replication", columns="round", values="regret")
        assert len(played) == 6
        assert list(played.columns) == list(grid["round"])
        mean, low, high = mean_interval(played.to_numpy())
        for name, values in (("regret", mean), ("regret_low", low), ("regret_high", high)):
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
    cost = result.compare(PRIVATE, TWIN)
    ends = [noise.difference, noise.difference_low, noise.difference_high]
    assert ends == pytest.approx([cost.mean, cost.low, cost.high], rel=1e-12)


def test_mine_against_each_rival_and_all_pairs(result):
    mine = result.comparisons(PRIVATE)
    assert list(mine.other) == [name for name in result.names if name != PRIVATE]
    assert set(mine.cell) == {PRIVATE}
    every = result.comparisons(cells=result.names)
    assert len(every) == 10
    assert list(result.comparisons("ucb", cells=[PRIVATE, "ucb"]).other) == [PRIVATE]
    for table in (mine, every):
        differences = [result.compare(row.cell, row.other).mean for row in table.itertuples()]
        np.testing.assert_allclose(table.difference, differences, rtol=1e-12)
        assert (table.simultaneous_low <= table.difference_low).all()
        assert (table.difference_high <= table.simultaneous_high).all()
    both = [(row.simultaneous_low, row.simultaneous_high) for row in (mine.iloc[0], every[every.cell == "ucb"].iloc[0])]
    assert both[0][1] - both[0][0] < both[1][1] - both[1][0]  # four pairs hold together more tightly than ten
    with pytest.raises(bandana.SpecError, match="unknown cell 'tight'"):
        result.comparisons("tight")


def test_a_frame_of_some_cells_in_an_order(result):
    assert list(result.frame(cells=["greedy", "ucb"]).cell) == ["greedy", "ucb"]
    ordered = result.frame(sort="-regret")
    assert list(ordered.regret) == sorted(result.frame().regret, reverse=True)
    with pytest.raises(bandana.SpecError, match="unknown column 'regrets'; did you mean 'regret'"):
        result.frame(sort="regrets")


def test_a_cell_is_known_by_its_title_too(result):
    assert list(result.frame(cells=["ucb", TITLE]).cell) == ["ucb", PRIVATE]
    assert result.compare(TITLE, "ucb") == result.compare(PRIVATE, "ucb")


def test_an_unknown_cell_is_answered_with_the_known_ones(result):
    for ask in (lambda: result.compare("ucb", "adar-ucb tight eps=2"), lambda: result.frame(cells=["adar-ucb tight eps=2"])):
        with pytest.raises(bandana.SpecError, match=r"^unknown cell '.*=2'; did you mean 'adar-ucb .*'\? `names` shows all"):
            ask()


def test_regret_on_private_data_is_withheld_everywhere(tmp_path):
    found = bandana.run(private_people(tmp_path), data=tmp_path / "data")
    frame = found.frame()
    assert frame[["regret", "regret_low", "regret_high", "regret_q50"]].isna().all().all()
    assert (frame.caution == "regret is withheld: the data are private").all()
    assert found.curves().regret.isna().all()
    assert found.curves(replicates=True).empty
    assert found.comparisons().empty
    with pytest.raises(bandana.SpecError, match="withheld"):
        found.compare("ucb", found.names[-1])


def test_without_their_annex_figures_and_exports_are_refused(result, tmp_path, monkeypatch):
    monkeypatch.setattr("bandana.flows.api.result.plugged", lambda point: {})
    for name, ask in (("plot", result.plot), ("export", lambda: result.export(tmp_path))):
        with pytest.raises(bandana.SpecError, match=f"^{name}: is of an annex that this installation does not have$"):
            ask()


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
