"""Claims are held against their own number, whatever the noise."""

import pytest
from nightly import first

from bandana.algorithms.environments.tables import random_table
from bandana.audits.claims import ClaimError, Quantity, parse
from bandana.audits.outcome import MU, Effort, Verdict, claimed_as, is_exactly_accounted, main_quantity
from bandana.audits.own import white_box
from bandana.audits.reporting.document import broken_order
from bandana.audits.searches.noise import examine as examine_noise
from bandana.audits.summary import summarize
from bandana.audits.trial import Trial
from bandana.privacy_core import (
    ZCDP,
    ApproxDP,
    ConcentratedEvent,
    DiscreteGaussian,
    Gaussian,
    GaussianEvent,
    LaplaceEvent,
    PhaseSum,
    PureDP,
    Relation,
    RenyiDP,
)
from tests.museum.protocol.bandit import Bandit
from tests.museum.protocol.honest import HONEST

GAUSSIAN = ((GaussianEvent(1.0), 1),)
LAPLACE = ((LaplaceEvent(1.0), 1),)
DISCRETE = ((ConcentratedEvent(0.5), 1),)
EPSILON, PURE, RHO = Quantity("epsilon", 1e-5), Quantity("epsilon"), Quantity("rho")


@pytest.mark.parametrize(
    ("stated", "events", "main"),
    [
        (ApproxDP(1.0, 1e-5), GAUSSIAN, MU),
        (ApproxDP(1.0, 1e-5), LAPLACE, EPSILON),
        (ApproxDP(1.0, 1e-5), DISCRETE, EPSILON),
        (ZCDP(0.5), GAUSSIAN, MU),
        (ZCDP(0.5), DISCRETE, RHO),
        (RenyiDP(2.0, 1.0), LAPLACE, Quantity("divergence", alpha=2.0)),
        (PureDP(1.0), GAUSSIAN, PURE),
        (PureDP(1.0), LAPLACE, PURE),
    ],
)
def test_the_main_quantity_is_the_claims_own_unless_all_noise_is_gaussian(stated, events, main):
    assert main_quantity(stated, events) == main


def test_a_claim_allows_nothing_in_another_noises_mu():
    assert claimed_as(MU, ApproxDP(1.0, 1e-5), GAUSSIAN) == pytest.approx(0.268, abs=1e-3)
    assert claimed_as(MU, ApproxDP(1.0, 1e-5), LAPLACE) == float("inf")
    assert claimed_as(EPSILON, ApproxDP(1.0, 1e-5), LAPLACE) == 1.0


def test_the_accountant_knows_where_its_number_is_an_upper_bound():
    assert is_exactly_accounted(MU, GAUSSIAN)
    assert not is_exactly_accounted(MU, LAPLACE)
    assert not is_exactly_accounted(EPSILON, DISCRETE)
    assert is_exactly_accounted(RHO, DISCRETE)


def _examined(bandit, claim, replays=2000):
    table = random_table(16, 2, bandit.reward_range, 0)
    trial = Trial(bandit, parse(claim), table, (0, 2))
    return white_box.examine(trial, Effort(replays, 0.95, 1e-5, 5, 0), {}, {}, controls=())


@pytest.mark.parametrize(
    "name", first(2, ["laplace-gdp", "discrete-approx", "laplace-approx", "laplace-zcdp", "discrete-zcdp"])
)
def test_honest_noise_of_any_kind_is_never_refuted(name):
    """With 95 % for each by its confidence."""
    outcome = _examined(*HONEST[name])
    assert not outcome.broken
    about = {"label": name, "algorithm": name, "calibration": None, "privacy_model": "central", "parameters": {}}
    assert not broken_order(summarize(outcome, about))


def test_what_the_accountant_cannot_derive_is_not_refuted():
    bandit, _ = HONEST["discrete-zcdp"]
    outcome = _examined(bandit, "gdp(mu=1.1, relation=reward)")
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert any("the accountant cannot derive the claim" in caveat for caveat in outcome.all_caveats)


@pytest.mark.nightly
def test_gaussian_noise_keeps_no_pure_claim():
    """In `make test`: the test of that name on another bandit, in `tests/audits/faults/test_release_faults.py`."""
    outcome = _examined(Bandit(), "pure(epsilon=5, relation=reward)")
    assert outcome.verdict is Verdict.FAIL
    assert "no finite epsilon" in " ".join(outcome.reasons)


def test_a_trajectory_of_rounds_is_refused():
    bandit = Bandit(sums=PhaseSum(Gaussian(1.0, 1.0, Relation.REPLACE_TRAJECTORY)))
    table = random_table(16, 2, bandit.reward_range, 0)
    with pytest.raises(ClaimError, match="relation=trajectory needs an algorithm that plays episodes"):
        white_box.check_scope(bandit, table, parse("gdp(mu=1, relation=trajectory)"), 0)


def test_the_noise_of_a_fine_grid_is_audited_without_summing_over_it():
    for share, is_found in ((1.0, False), (0.9, True)):
        drawn = DiscreteGaussian(1.0, 1.0, 2.0**-30, Relation.REPLACE_REWARD)

        class Bed(Bandit):
            def close(self, sums, ledger, ended, history, share=share):
                return super().close(sums, _Scaled(ledger, share), ended, history)

        table = random_table(16, 2, Bandit().reward_range, 0)
        assert (examine_noise(Bed(sums=PhaseSum(drawn)), table) is not None) is is_found


class _Scaled:
    """A ledger that takes a part of the noise off again."""

    def __init__(self, ledger, share):
        self.n_reps, self._ledger, self._share = ledger.n_reps, ledger, share

    def release(self, mechanism, value, **more):
        true = mechanism.scaled(self._share)
        return self._ledger.release(_Declared(mechanism, true) if self._share < 1 else mechanism, value, **more)


class _Declared:
    """A mechanism that draws what another one draws."""

    def __init__(self, declared, true):
        self._declared, self._true = declared, true

    def __getattr__(self, name):
        return getattr(self._declared, name)

    def draw(self, noise, value):
        return self._true.draw(noise, value)
