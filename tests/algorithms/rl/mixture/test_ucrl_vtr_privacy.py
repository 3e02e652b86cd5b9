"""UCRL-VTR: what the ledger's worst record pays, what a release holds, and the audit of one episode by likelihoods."""

from __future__ import annotations

import numpy as np
import pytest
from doubles import OwnNoiseLedger
from mixture_models import FORMS, UNIT, episode_table, mixture, vtr
from test_ucrl_vtr import MODEL, TABLE, K

from bandana.algorithms.environments.episodes import EpisodeTable
from bandana.algorithms.papers import luyo
from bandana.algorithms.protocol import Record
from bandana.algorithms.rl.mixture.calibrations import calibrations
from bandana.algorithms.rl.mixture.forms import VTR
from bandana.algorithms.run import run
from bandana.privacy_core import GaussianDP, LiveLedger, PureDP, ReproducibleNoise, ScriptedLedger, TrustModel
from bandana.privacy_core.noise.sensitivities import matrix_l1_bound, pair_l1_bound

MU = GaussianDP.from_epsilon_delta(1.0, 1e-5).mu
every = pytest.mark.parametrize("name", FORMS)


def played(algorithm, table=TABLE):
    ledger = OwnNoiseLedger([1, 2], keeps_transcript=True)
    run(algorithm, table, ledger)
    return ledger


@pytest.mark.parametrize("name", ["joint tree", "joint tight", "local tight"])
def test_exact_calibrations_spend_the_claim(name):
    assert played(vtr(name, MODEL, K)).guarantee().gdp().mu == pytest.approx(MU, rel=1e-9)


@pytest.mark.parametrize("name", ["pure joint tight", "pure local tight"])
def test_exact_pure_calibrations_spend_the_claim(name):
    found = played(vtr(name, MODEL, K)).guarantee()
    assert isinstance(found, PureDP)
    assert found.epsilon == pytest.approx(1.0, rel=1e-9)


def test_published_noise_costs_the_worst_of_all_nodes_and_steps():
    """2 H^2 for each of 4 nodes and H - 1 steps with GOE noise; sqrt 4.5 H^2 for each step with equal variances."""
    joint, local = luyo.vtr_joint_printed_sd(1.0, 1e-5, K, 3), luyo.vtr_local_printed_sd(1.0, 1e-5, 3)
    for name, mu in (("joint printed", 2 * 9 * (4 * 2) ** 0.5 / joint), ("local printed", 9 * (4.5 * 2) ** 0.5 / local)):
        assert played(vtr(name, MODEL, K)).guarantee().gdp().mu == pytest.approx(mu, rel=1e-9)


@pytest.mark.parametrize("reading", ["l2-constants", "l1-constants"])
@pytest.mark.parametrize("d", [2, 6])
def test_published_pure_noise_costs_the_l1_change_of_all_nodes_and_steps(reading, d):
    """With the constants of the Gaussian proof it is more than the claim in many dimensions."""
    model, _ = mixture(3, 2, 5, d, seed=4, is_sparse=False)
    table = episode_table(model, 8)
    weights = (2.0, 2.0) if reading == "l2-constants" else (matrix_l1_bound(d), 2 * d**0.5)
    for name, levels in (("pure joint printed", 4), ("pure local printed", 1)):
        found = played(vtr(name, model, 8, reading=reading), table).guarantee().epsilon
        matrix, vector = (weight * 2 * 5**3 * levels for weight in weights)
        assert found == pytest.approx(levels * 4 * 25 * pair_l1_bound(d, 1 / matrix, 1 / vector), rel=1e-9)
        assert (found > 1) == (reading == "l2-constants" and d == 6)


@every
def test_one_release_an_episode_that_holds_it_alone_or_its_node(name):
    ledger = played(vtr(name, MODEL, K))
    assert len(ledger.transcript) == K
    for step, entry in enumerate(ledger.transcript, start=1):
        assert (entry.records.stop == step).all()
        length = (step & -step) if "tree" in name or "joint printed" in name or "pure joint" in name else 1
        assert (entry.records.start == step - length).all()


def neighbors(seed):
    """The table with the whole tree of user 2 drawn anew."""
    rng = np.random.default_rng(seed)
    first, after, rewards = TABLE.first_states.copy(), TABLE.next_states.copy(), TABLE.rewards.copy()
    first[2], after[2], rewards[2] = rng.integers(3), rng.integers(3, size=after[2].shape), rng.random(rewards[2].shape)
    return EpisodeTable(first, after, rewards, UNIT)


@every
def test_no_neighbor_moves_a_release_by_more_than_its_sensitivity(name):
    """The deterministic audit, by hand: the same outputs on a neighbor, and what each release's value moves by."""
    algorithm = vtr(name, MODEL, K)
    ledger, most = played(algorithm), 0.0
    for seed in range(12):
        scripted = ScriptedLedger(2, ledger.transcript, keeps_values=True)
        run(algorithm, neighbors(seed), scripted)
        assert (scripted.diverged == -1).all()
        for one, other in zip(ledger.transcript, scripted.values, strict=True):
            moved = one.mechanism.change(one.value, other)
            inside = (one.records.start <= 2) & (one.records.stop > 2)
            carried = one.carried is not None
            assert (inside | carried | (moved == 0)).all()
            assert (moved <= one.mechanism.sensitivity * (1 + 1e-12)).all()
            most = max(most, float(moved.max() / one.mechanism.sensitivity))
    # Printed noise leaves values at their cap, where these features hardly tell states apart.
    assert most > (0.003 if "printed" in name else 0.05), "the neighbors move nothing: the test is empty"


def test_tight_noise_is_a_small_part_of_the_printed_one():
    """At H = 5 and K = 1024 the exact price, known values and centers leave a four hundredth of a node's noise."""
    model, _ = mixture(3, 2, 5, 4, is_sparse=False)
    printed, tree = (vtr(f"joint {c}", model, 1024).sums for c in ("printed", "tree"))
    tight = vtr("joint tight", model, 1024).sums
    assert printed.mechanism.scale / tree.mechanism.scale > 400
    assert tight.noise_deviation(1023) < 0.5 * tree.noise_deviation(1023)


@pytest.mark.parametrize("is_plus", [False, True])
@pytest.mark.parametrize("form", ["joint", "local", "pure joint", "pure local"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ridge": 0.0}, "ridge"),
        ({"failure": 0.0}, "failure"),
        ({"failure": 1.0}, "failure"),
        ({"beta_scale": -1.0}, "beta_scale"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"horizon": 0}, "horizon must be a whole number of at least 1"),
    ],
)
def test_refusals(form, is_plus, arguments, message):
    for calibration in ("tight", "printed"):
        with pytest.raises(ValueError, match=message):
            vtr(f"{form} {calibration}", MODEL, **{"horizon": 10, "is_plus": is_plus} | arguments)


def test_parts_or_a_trust_model_that_are_none():
    promise, tight = PureDP(1.0), calibrations(False, True, True)["tight"]
    for wrong, message in (
        ({"noise": "tight"}, "parts must be noise, width, values, got noise"),
        (tight | {"sum": "tree"}, "parts must be noise, width, values, got noise, width, values, sum"),
        (tight | {"width": "loose"}, "width must be one of printed, exact, got 'loose'"),
    ):
        with pytest.raises(ValueError, match=message):
            VTR(MODEL, 10, UNIT).private(promise, TrustModel.JOINT, wrong)
    with pytest.raises(ValueError, match="trust must be joint or local, got central"):
        VTR(MODEL, 10, UNIT).private(promise, TrustModel.CENTRAL, tight)
    with pytest.raises(ValueError, match="epsilon must be a finite number above 0, got 0"):
        vtr("joint printed", MODEL, 10, 0.0)


def test_a_reading_that_is_none():
    with pytest.raises(ValueError, match="reading must be one of l2-constants, l1-constants, got 'other'"):
        vtr("pure joint printed", MODEL, 10, reading="other")


def test_a_stream_without_episodes_is_refused():
    algorithm = vtr("joint tight", MODEL, K)
    one, ledger = np.ones((1, 3), dtype=np.int64), LiveLedger(1, ReproducibleNoise(np.random.SeedSequence(0)))
    with pytest.raises(ValueError, match="learns from episodes"):
        algorithm.absorb(*algorithm.init(1), Record(one[:, 0], one[:, 0], None, one, one.astype(float)), ledger)
