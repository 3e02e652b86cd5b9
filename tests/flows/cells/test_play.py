"""A block as MLflow and the report see it: what was spent, in the quantity that the claim is stated in."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from small_spec import SMALL, SMALL_LINEAR

from bandana.flows.cells import replicates
from bandana.flows.cells.play import BENCHMARK, benchmark_block, is_played
from bandana.flows.folder.store import Store
from bandana.flows.plan.plan import cells_of
from bandana.flows.results.summaries import benchmark_record, summarize_cell
from bandana.flows.spec.spec import parse_spec
from bandana.privacy_core import Gaussian, GaussianDP, LiveLedger, PureDP, ReproducibleNoise, Span
from bandana.privacy_core.accounting.accountant import accounted_mu


def cells(text, *algorithms):
    tree = yaml.safe_load(text) | {"algorithms": list(algorithms)}
    return cells_of(parse_spec(yaml.safe_dump(tree), "spec.yaml", Path()))


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


def test_a_pure_run_is_described_by_its_epsilon(store):
    (cell,) = cells(SMALL, {"algorithm": "adap-klucb", "calibrations": "printed", "privacy": {"epsilon": 1}})
    arrays, described = benchmark_block(cell.blocks()[0], store)
    assert described["pure"] == pytest.approx(1.0, abs=1e-9)
    assert described["pure"] <= 1
    assert described["mu"] == pytest.approx(PureDP(1.0).gdp().mu, abs=1e-6)
    assert (np.diff(arrays["mu_spent"]) >= 0).all()
    assert is_played(cell.blocks()[0], store)
    assert not is_played(cell.blocks()[1], store)
    assert store.load(BENCHMARK, cell.blocks()[0].key)[1] == described


def test_what_is_spent_is_known_at_each_round_though_few_are_computed(monkeypatch):
    """The first record pays in eight releases of 128 rounds, at each power of two."""
    ledger, grid, computed = LiveLedger(1, ReproducibleNoise(np.random.SeedSequence(0))), np.arange(1, 129), []
    for power in range(8):
        ledger.release(Gaussian(1.0, 2.0), np.zeros((1, 1)), records=Span(np.array([0]), np.array([1 << power])))
    whole = [accounted_mu(tuple(ledger.worst_record(before=int(t), rep=0).items())) for t in grid]

    def counted(events):
        computed.append(events)
        return accounted_mu(events)

    monkeypatch.setattr(replicates, "accounted_mu", counted)
    assert replicates._spent(ledger, grid, None).tolist() == whole
    assert len(set(whole)) == 8
    assert len(computed) < 64


def test_other_runs_have_no_pure_epsilon(store):
    gaussian, bare = cells(SMALL, {"algorithm": "adar-ucb", "calibrations": "tight", "privacy": {"alpha": 2, "epsilon": 1}},
                           {"algorithm": "ucb"})  # fmt: skip
    described = benchmark_block(gaussian.blocks()[0], store)[1]
    assert described["pure"] is None
    assert described["mu"] == pytest.approx(1.0)
    described = benchmark_block(bare.blocks()[0], store)[1]
    assert described["pure"] is described["mu"] is None


@pytest.mark.parametrize(
    "algorithm",
    [
        {"algorithm": "adap-ucb", "calibrations": "tight"}, {"algorithm": "adap-klucb", "calibrations": "tight"},
        {"algorithm": "dp-ucb"}, {"algorithm": "dp-se", "failure": 0.1, "length_scale": 0.01},
        {"algorithm": "adar-gope", "beta_scale": 0.01},
    ],
    ids=lambda algorithm: algorithm["algorithm"],
)  # fmt: skip
def test_the_record_of_a_pure_claim_tells_epsilons_at_delta_of_pure_dp(algorithm, store):
    (cell,) = cells(SMALL_LINEAR, algorithm | {"privacy": {"epsilon": 1}})
    metrics = benchmark_record(cell, summarize_cell(cell, store)).metrics
    assert metrics["privacy/epsilon_claimed"] == pytest.approx(PureDP(1.0).epsilon_at(1e-5))
    assert 0.99 < metrics["privacy/epsilon_accounted"] <= metrics["privacy/epsilon_claimed"] * (1 + 1e-9)
    assert metrics["privacy/epsilon_claimed"] <= 1, "not the 5.6 of the Gaussian DP that follows from it"
    assert metrics["privacy/mu_accounted"] <= metrics["privacy/mu_claimed"] * (1 + 1e-9)


def test_the_record_of_a_gaussian_claim_tells_those_of_gaussian_dp(store):
    (cell,) = cells(SMALL, {"algorithm": "adar-ucb", "calibrations": "tight", "privacy": {"alpha": 2, "epsilon": 1}})
    metrics = benchmark_record(cell, summarize_cell(cell, store)).metrics
    assert metrics["privacy/epsilon_claimed"] == pytest.approx(GaussianDP(1.0).epsilon(1e-5))
    assert metrics["privacy/epsilon_accounted"] == pytest.approx(GaussianDP(metrics["privacy/mu_accounted"]).epsilon(1e-5))


def test_a_run_that_released_nothing_spent_nothing(store):
    """The first epoch of dp-se at this epsilon is longer than the run."""
    (cell,) = cells(SMALL, {"algorithm": "dp-se", "privacy": {"epsilon": 0.01}})
    summary = summarize_cell(cell, store)
    assert summary["mu"] == 0
    record = benchmark_record(cell, summary)
    assert "privacy/epsilon_accounted" not in record.metrics
    assert record.metrics["privacy/epsilon_claimed"] == pytest.approx(0.01, abs=1e-4)


def test_the_parameters_of_a_run_are_its_own_and_its_level(store):
    (cell,) = cells(SMALL, {"algorithm": "dp-se", "length_scale": 0.5, "privacy": {"epsilon": 1}})
    params = benchmark_record(cell, summarize_cell(cell, store)).params
    assert params["length_scale"] == 0.5
    assert params["failure"] == 1 / 500
    assert params["epsilon"] == 1
    assert params["guarantee"] == "pure"
