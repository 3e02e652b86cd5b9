"""Audits of UCRL-VTR and UCRL-VTR+: least favorable pairs that reach the claim, planted faults, a false claim."""

from __future__ import annotations

import math

import pytest
from nightly import first

from bandana.algorithms.catalog import find
from bandana.algorithms.environments.episodes import random_episodes
from bandana.algorithms.environments.worst_mdps import mixture_bed
from bandana.algorithms.problem import Problem
from bandana.audits.audit import audit
from bandana.audits.faults.catalog import CONTROLS
from bandana.audits.neighbors import worst_pair
from bandana.audits.outcome import DETERMINISTIC, Effort
from bandana.audits.searches.deterministic import examine_pair, search
from bandana.audits.seeds import derive
from bandana.audits.testbeds.catalog import bed_of, bed_settings
from bandana.audits.trial import Trial
from bandana.privacy_core import Interval, PureDP, account

ROUNDS = 64
UNIT = Interval(0.0, 1.0)


def trial(name, calibration, **parameters):
    entry = find(name)
    problem, table = bed_of(entry, ROUNDS, 0)
    settings = bed_settings(entry, problem, calibration)
    settings = settings.with_parameters(**parameters)
    return Trial(entry.build(settings), entry.promise(settings), table, entry.probes(problem.n_actions))


def reached(name, calibration):
    of = trial(name, calibration)
    return worst_pair.find(of.algorithm, of.table, (0,), 0, private_records=True).mu_analytic


@pytest.mark.parametrize("name", first(1, ["ucrl-vtr local", "ucrl-vtr joint"]))
def test_a_replaced_episode_reaches_the_whole_claim(name):
    """Opposite features at every step: the sensitivities are attained, not only bounded."""
    assert reached(name, "tight") == pytest.approx(1.0, abs=1e-6)


def test_weights_are_away_from_their_floor_in_few_episodes():
    """At d = 2 the floor is 0.8 of the largest s^2: of the price its square of four fifths is used, and all of a fifth."""
    used = (math.sqrt(0.5) / math.atanh(math.sqrt(0.5))) ** 2
    assert reached("ucrl-vtr-plus joint", "tight") == pytest.approx((0.8 * used + 0.2) ** 0.5, abs=0.02)


def one_at_a_time(name):
    """Each part of `tight` in `printed` alone, and each of `printed` in `tight` alone."""
    printed, tight = (find(name).parts[calibration] for calibration in ("printed", "tight"))
    return [base | {part: other[part]} for base, other in ((printed, tight), (tight, printed)) for part in base]


MIXTURES = [
    (name, parts)
    for name in ("ucrl-vtr joint", "ucrl-vtr local pure", "ucrl-vtr-plus joint", "ucrl-vtr-plus local")
    for parts in one_at_a_time(name)
]


@pytest.mark.parametrize(("name", "parts"), first(2, MIXTURES))
def test_faults_are_found_in_mixed_calibrations_too(name, parts):
    """The deterministic audit finds each of its faults that is one there, and nothing in the honest algorithm."""
    of = trial(name, parts)
    book = None if isinstance(of.claim.stated, PureDP) else of.claim.gaussian
    assert search(of.algorithm, UNIT, book, 60, 8, False, True) is None
    planted = [c for c in CONTROLS[name] if DETERMINISTIC in c.caught_by and c.is_fault(of.algorithm)]
    assert len(planted) > 2
    for control in planted:
        assert search(control.plant(of.algorithm), UNIT, book, 150, 8, False, True) is not None, control.name


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["ucrl-vtr joint", "ucrl-vtr-plus local"])
def test_a_small_audit_passes_and_catches_every_fault(name):
    found = audit(trial(name, "tight"), CONTROLS[name], Effort(3000, 0.95, 1e-5, 40, 0))
    missed = {control.name: (control.measured, control.caught_by) for control in found.controls if not control.is_caught}
    assert not missed
    assert str(found.verdict) == "PASS"


@pytest.mark.parametrize("name", ["ucrl-vtr joint pure", "ucrl-vtr local pure"])
def test_laplace_noise_with_the_constants_of_gaussian_noise_is_told_apart_by_the_book(name):
    """Printed noise with L2 sensitivities, at d = 6: the accountant finds more than the claim."""
    for reading, is_true in (("l2-constants", False), ("l1-constants", True)):
        of = trial(name, "printed", reading=reading)
        found = account(dict(derive(of.algorithm, of.table, seed=0)))
        assert isinstance(found, PureDP)
        assert (found.epsilon <= of.claim.stated.epsilon) == is_true


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["ucrl-vtr joint pure", "ucrl-vtr local pure"])
def test_what_the_book_finds_is_a_fail(name):
    of = trial(name, "printed", reading="l2-constants")
    assert str(audit(of, (), Effort(1000, 0.95, 1e-5, 1, 0)).verdict) == "FAIL"


@pytest.mark.parametrize(
    ("calibration", "steps", "is_fault"), first(2, [("tight", 4, True), ("printed", 4, False), ("printed", 8, True)])
)
def test_constants_in_l2_are_no_fault_where_more_is_wasted_than_they_lack(calibration, steps, is_fault):
    """At d = 3 they lack 1.41; of H - 1 blocks the last one's values are 1 / H of what printed noise is made for: at H = 4
    2.06 of 3 blocks are used, and 0.97 times the constants is reached; at H = 8 6.02 of 7, and 1.22."""
    model = mixture_bed(3, 3, True, horizon=steps)
    settings = find("ucrl-vtr joint pure").settings(Problem(3, UNIT, 8, model=model), calibration, PureDP(1.0))
    algorithm = find("ucrl-vtr joint pure").build(settings)
    [control] = [control for control in CONTROLS["ucrl-vtr joint pure"] if control.name == "l2-constants"]
    assert control.is_fault(algorithm) == is_fault
    faulty, table = control.plant(algorithm), random_episodes(8, steps, 3, 3, UNIT, 0)
    worst = worst_pair.find(faulty, table, (0,), 0, private_records=True).pair
    found = search(faulty, UNIT, None, 60, 8, False, True) or examine_pair(faulty, worst, None, 0)
    assert (found is not None) == is_fault
