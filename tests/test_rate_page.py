"""docs/rates.md: the knee in epsilon by its theory, the stability of rankings by hand, and a page of what was measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from bandana.algorithms.lower_bounds.divergences import private_kl
from benchmarks import epsilon_knee, rank_stability
from benchmarks.epsilon_knee import LEVELS, crossing, flat_from, knee_of, means_of

DOCS = Path(__file__).resolve().parents[1] / "docs"


def theory(gap):
    """D / d_epsilon at every level, in the shape of three replications."""
    best, other = means_of(gap)
    return [np.full(3, gap / float(private_kl(other, best, epsilon))) for epsilon in LEVELS]


@pytest.mark.parametrize("gap", epsilon_knee.GAPS)
def test_the_predicted_knee_is_that_of_the_divergence(gap):
    best, other = means_of(gap)

    def divergence(epsilon):
        return float(private_kl(other, best, epsilon))

    assert crossing(gap) == pytest.approx(divergence(100.0) / gap)
    assert divergence(flat_from(gap) * 1.001) == pytest.approx(divergence(100.0), rel=1e-12)
    assert divergence(flat_from(gap) * 0.9) < divergence(100.0)
    assert divergence(1e-4) == pytest.approx(1e-4 * gap, rel=1e-2)
    assert crossing(gap) == pytest.approx(2 * gap, rel=gap**2)


@pytest.mark.parametrize("gap", epsilon_knee.GAPS)
def test_the_knee_of_theory_s_own_curve_is_the_predicted_one(gap):
    found = knee_of(LEVELS, theory(gap), gap)
    assert found.epsilon == pytest.approx(crossing(gap), rel=0.1)
    scaled = knee_of(LEVELS, [7 * regret for regret in theory(gap)], gap)
    assert scaled == pytest.approx(found), "a common factor, such as log T, cancels"


def test_a_knee_elsewhere_is_found_where_it_is():
    """Regret whose knee is at three times the prediction, with a spread of a fifth of each replication."""
    gap, generator = 0.1, np.random.default_rng(1)
    knee = 3 * crossing(gap)
    found = knee_of(LEVELS, [max(1, knee / e) * generator.uniform(0.8, 1.2, 100) for e in LEVELS], gap)
    assert found.low < found.epsilon < found.high
    assert found.epsilon == pytest.approx(knee, rel=0.1)
    assert found.low > 2 * crossing(gap)


def test_epsilons_that_do_not_reach_both_asymptotes_are_refused():
    with pytest.raises(ValueError, match=r"levels must reach from 0\.0251 to 1\.61, got"):
        knee_of([0.1, 0.2, 4.0], [np.ones(2)] * 3, 0.1)


def test_every_entry_plays_at_every_epsilon():
    cells = epsilon_knee.cells_at(0.2)
    assert [cell.entry.label for cell in cells] == [name for name in epsilon_knee.ENTRIES for _ in LEVELS]
    assert [cell.settings.level()["epsilon"] for cell in cells] == [*LEVELS] * len(epsilon_knee.ENTRIES)


def test_tau_by_hand():
    rising = np.arange(4.0)
    assert rank_stability.tau_between(rising, 10 * rising) == 1
    assert rank_stability.tau_between(rising, -rising) == -1
    assert rank_stability.tau_between(rising, np.array([0.0, 2.0, 1.0, 3.0])) == pytest.approx(4 / 6)
    assert rank_stability.tau_between(rising, np.ones(4)) == 0
    assert rank_stability.mean_tau(np.array([rising, -rising])) == (-1, -1, -1), "no instance is a pair with itself"


def test_a_summary_counts_who_is_best_and_what_replications_permit():
    regrets = np.empty((10, 3, 4))
    regrets[:] = np.array([1.0, 2.0, 3.0])[None, :, None]
    regrets[:3, 1] = 0.5
    found = rank_stability.summary("by hand", regrets, ["a", "b", "c"])
    assert [share[0] for share in found["best"].values()] == [0.7, 0.3, 0.0]
    assert all(low <= share <= high for share, low, high in found["best"].values())
    assert found["tau_of_halves"] == pytest.approx(1.0)
    pairs_alike, pairs_apart = 7 * 6 + 3 * 2, 2 * 7 * 3
    assert found["tau"][0] == pytest.approx((pairs_alike + pairs_apart / 3) / 90)
    assert "a: 70% (35% to 93%); b: 30% (7% to 65%) |" in rank_stability.table_of([found])


@pytest.mark.parametrize("group", rank_stability.CLASSES, ids=lambda group: group.name)
def test_an_instance_is_its_seed_s_and_every_entry_plays_on_it(group, monkeypatch):
    monkeypatch.setattr(rank_stability, "REPLICATIONS", 2)
    first, second = (group.instance(np.random.Generator(np.random.SFC64(seed))) for seed in (0, 1))
    assert first != second
    played = rank_stability.finals(group._replace(horizon=200), 0)
    assert len(played) >= 4
    assert {regret.shape for regret in played.values()} == {(2,)}


def test_the_page_shows_what_was_measured(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    import rate_figures

    page = rate_figures.PAGE.read_text(encoding="utf-8")
    tables = dict.fromkeys(("rates", "epsilon-knee", "rank-stability"), "gone")
    assert rate_figures.filled(page, tables).count("gone") == 3
    slopes, knees, ranks = (json.loads(each.DATA.read_text()) for each in (rate_figures.rates, epsilon_knee, rank_stability))
    tables = {
        "rates": rate_figures.table_of_rates(slopes), "epsilon-knee": epsilon_knee.table_of(knees),
        "rank-stability": rank_stability.table_of(ranks),
    }  # fmt: skip
    assert rate_figures.filled(page, tables) == page, "run: python docs/rate_figures.py"
    assert "<svg" in rate_figures.figure_of_rates(slopes)
    assert "<svg" in rate_figures.figure_of_knees(knees)
    sys.modules.pop("rate_figures")
