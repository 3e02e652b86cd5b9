"""Slopes of regret across horizons: known power laws, the interval's coverage, and a small run of the command."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from bandana.algorithms.catalog import CATALOG
from bandana.flows.plan.plan import cells_of
from bandana.flows.spec.spec import parse_spec
from benchmarks import rate_families, rates
from benchmarks.rate_families import FAMILIES

HORIZONS = (100, 400, 1600)
SPEC = """
name: small-rates
seed: 3
environment: {kind: modes, states: 3, actions: 2, dimension: 2, steps: 2}
horizon: 64
replications: 3
block_size: 2
algorithms:
  - {algorithm: lsvi-ucb, model: none}
  - {algorithm: lsvi-ucb, model: joint, calibrations: [printed, tight], privacy: {epsilon: 10, delta: 1.0e-5}, n_batches: 4}
  - {algorithm: lsvi-ucb, model: joint, calibrations: tight, batches: geometric, privacy: {epsilon: 5, delta: 1.0e-5}}
"""


def drawn(generator, n, spread, power=0.6):
    """Regrets of n replications at each horizon around 3 K^power, with a heavy tail that all horizons share in part."""
    common = generator.standard_normal((n, 1))
    noise = np.exp(spread * (common + generator.standard_normal((n, len(HORIZONS)))) - spread**2)
    return list((3 * np.array(HORIZONS, dtype=float) ** power * noise).T)


def test_a_power_law_has_its_exponent():
    exact = [3.0 * np.ones(4) * k**0.6 for k in HORIZONS]
    assert rates.slope_of(HORIZONS, exact) == pytest.approx((0.6, 0.6, 0.6))
    found = rates.slope_of(HORIZONS, drawn(np.random.default_rng(1), 50, 0.3))
    assert found.low < found.slope < found.high
    assert found.high - found.low < 0.2
    assert found.slope == pytest.approx(0.6, abs=0.1)


def test_a_horizon_without_regret_has_no_slope():
    assert np.isnan(rates.slope_of(HORIZONS, [np.zeros(3), np.ones(3), np.ones(3)])).all()
    alone = rates.slope_of(HORIZONS, [np.array([float(k)]) for k in HORIZONS])
    assert alone.slope == pytest.approx(1.0)
    assert np.isnan(alone.low)


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 20])
def test_intervals_cover_the_slope(n):
    """In 400 experiments; an interval that covers 94 % falls below 90 % with probability 0.2 %."""
    generator = np.random.default_rng(n)
    covered = 0
    for _ in range(400):
        found = rates.slope_of(HORIZONS, drawn(generator, n, 0.3))
        covered += found.low <= 0.6 <= found.high
    assert covered >= 0.9 * 400


def test_every_cell_is_built_for_each_horizon():
    spec = parse_spec(SPEC, "rates.yaml", Path())
    for horizon in (32, 64):
        cells = rates.cells_at(spec, horizon)
        assert [cell.name for cell in cells] == [cell.name for cell in cells_of(spec)]
        assert {cell.algorithm().horizon for cell in cells} == {horizon}
    assert [rates.proved_rate(cell) for cell in cells] == [0.5, 0.6, 0.5, None]


def test_what_a_spec_tunes_is_chosen_for_each_horizon():
    text = SPEC + "tuning: {parameter: beta_scale, values: [0.01, 1.0], replications: 2}\n"
    tuned = rates.cells_at(parse_spec(text, "rates.yaml", Path()), 64)
    assert {cell.settings.parameters["beta_scale"] for cell in tuned} <= {0.01, 1.0}
    assert {cell.spec.seed for cell in tuned} == {3}


def test_the_command_prints_a_table(tmp_path, monkeypatch, capsys):
    place = tmp_path / "rates.yaml"
    place.write_text(SPEC, encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["rates", str(place), "--horizons", "32", "64", "--replications", "2"])
    rates.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| algorithm | 32 | 64 | slope | proved rate |"
    assert [line.count("|") for line in lines[:6]] == [6] * 6
    assert lines[2].startswith("| lsvi-ucb non-private | ")
    monkeypatch.setattr(sys, "argv", ["rates", str(place), "--horizons", "32", "32"])
    with pytest.raises(SystemExit):
        rates.main()


def test_the_families_are_those_of_the_catalog_at_mu_1_over_two_decades():
    played = {cell.entry.family for family in FAMILIES for cell in rate_families.cells(family, family.first)}
    assert played == {entry.family for entry in CATALOG if entry.is_private} - {"bandits/best_arm"}, "tests have no regret"
    for family in FAMILIES:
        assert family.horizons[-1] == 100 * family.horizons[0]
        for cell in rate_families.cells(family, family.horizons[0]):
            assert 0.999 < cell.claim().gaussian.mu <= 1 + 1e-9
            assert rates.theoretical(cell, family.horizons) is not None


def test_theory_on_arms_is_what_the_fit_finds_for_a_logarithm():
    (family,) = (each for each in FAMILIES if each.name == "finite arms, Gaussian")
    horizons = family.horizons
    found = rates.slope_of(horizons, [np.array([5 * np.log(t)] * 2) for t in horizons])
    cells = rate_families.cells(family, horizons[0])
    assert [rates.theoretical(cell, horizons) for cell in cells] == [pytest.approx(found.slope)] * len(cells)
    assert rate_families.slope_of_log([10**3, 10**5]) > rate_families.slope_of_log([10**6, 10**8]) > 0


def test_without_a_spec_the_families_are_measured_and_kept(tmp_path, monkeypatch, capsys):
    small = rate_families.Family("arms", {"kind": "bernoulli", "means": [0.9, 0.1]}, ("dp-imed",), 4, 3)
    monkeypatch.setattr(rates, "FAMILIES", (small,))
    monkeypatch.setattr(rates, "DATA", tmp_path / "rates.json")
    monkeypatch.setattr(sys, "argv", ["rates"])
    rates.main()
    (row,) = json.loads((tmp_path / "rates.json").read_text())
    assert row["horizons"] == [4, 13, 40, 126, 400]
    assert row["low"] <= row["slope"] <= row["high"]
    assert capsys.readouterr().out.startswith("dp-imed: ")
