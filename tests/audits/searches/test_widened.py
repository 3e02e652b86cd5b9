"""Widened noise: which release it meets, and that it shows leaks in tails without a false word about honest algorithms."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from bandana.algorithms.environments.tables import random_table
from bandana.audits.faults.places import planted_at_random
from bandana.audits.searches import checks
from bandana.audits.searches.sides import play
from bandana.audits.searches.walk import n_cases_of, rarest_of, values_of, walk
from bandana.audits.searches.widened import FIRST_READER, NEVER, WIDER, WideningLedger, rarest_tail
from bandana.privacy_core import (
    Exact,
    Gaussian,
    Laplace,
    LiveLedger,
    RandomizedResponse,
    Relation,
    ReproducibleNoise,
    Span,
    without_noise,
)
from tests.museum.protocol.bandit import Bandit
from tests.museum.protocol.broken import ExactBelow

BANDIT, ONE = Bandit(), Gaussian(1.0, 1.0, Relation.REPLACE_REWARD)
TABLE = random_table(32, 2, BANDIT.reward_range, 0)
N_CASES = n_cases_of(BANDIT, TABLE, 16_000)


def _released(wanted, record, spans, mechanism=ONE, seed=0):
    """(n_releases, n_reps) outputs of zeros over the given spans, the ledger, and its transcript's outputs."""
    n_reps = len(wanted)
    live = LiveLedger(n_reps, ReproducibleNoise(np.random.SeedSequence(seed)), keeps_transcript=True)
    noise = ReproducibleNoise(np.random.SeedSequence(seed + 1))
    ledger = WideningLedger(live, noise, np.full(n_reps, record), np.array(wanted))
    rows = [
        ledger.release(mechanism, np.zeros(n_reps), records=Span(np.full(n_reps, start), np.full(n_reps, stop)))
        for start, stop in spans
    ]
    return np.array(rows), ledger, np.array([release.output for release in live.transcript])


SPANS = [(0, 2), (2, 4), (4, 6)]


def test_only_the_wanted_release_is_widened_and_the_transcript_has_it():
    plain, _, _ = _released([NEVER] * 4, 3, SPANS)
    found, ledger, kept = _released([NEVER, 0, 2, FIRST_READER], 3, SPANS)
    assert ledger.widened.tolist() == [NEVER, 0, 2, 1]
    assert np.argwhere(found != plain).tolist() == [[0, 1], [1, 3], [2, 2]]
    np.testing.assert_array_equal(found, kept)


def test_what_is_drawn_is_the_mechanism_with_three_times_its_noise():
    found, _, _ = _released([0] * 5, 0, SPANS[:1])
    again = ReproducibleNoise(np.random.SeedSequence(1))
    np.testing.assert_array_equal(found[0], ONE.scaled(WIDER).draw(again, np.zeros(5)))


def test_a_record_that_no_release_reads_widens_none():
    _, ledger, _ = _released([FIRST_READER] * 3, 9, SPANS)
    assert ledger.widened.tolist() == [NEVER] * 3


def test_no_noise_stays_no_noise():
    found, _, _ = _released([0, NEVER], 0, SPANS[:1], Exact())
    assert found.tolist() == [[0.0, 0.0]]
    assert without_noise(Exact(), np.zeros(1)).tolist() == [0.0]


def test_tails_by_hand():
    """Three deviations are a tail of 1.35e-3, which noise three times as large passes with probability sf(1) = 0.159."""
    assert rarest_tail([ONE], stats.norm.sf(1.0)) == pytest.approx(stats.norm.sf(3.0))
    # exp(-t) / 2 with t = 3 log(1 / (2 chance)): half of the cube of twice the chance.
    assert rarest_tail([ONE, Laplace(1.0, 1.0, Relation.REPLACE_REWARD)], 0.05) == pytest.approx(0.1**3 / 2)
    assert rarest_tail([RandomizedResponse(2, 1.0)], 0.01) == 1.0
    assert rarest_tail([], 0.01) == rarest_tail([ONE], 0.5) == 1.0


@pytest.mark.parametrize("deviations", [4.0, 6.0])
def test_an_exact_value_in_the_tail_is_found_and_shown_again(deviations):
    """Six deviations have a probability of 1e-9; wide noise passes them in 2 cases of 100, so each of 8,000 walks misses it
    with probability below 1e-9."""
    broken = ExactBelow(limit=-deviations)
    found, _ = walk(broken, TABLE, None, N_CASES, 0)
    assert found is not None
    assert found.case.wide >= 0
    assert "times its noise" in " ".join(found.lines())
    assert found.describe()["case"]["wide"] == found.case.wide
    assert checks.first_violation(play(broken, found.case, BANDIT.reward_range), None) is not None


def test_an_honest_bandit_says_down_to_which_tails_it_was_searched():
    found, coverage = walk(BANDIT, TABLE, None, N_CASES, 0)
    assert found is None
    assert coverage.tail == pytest.approx(stats.norm.sf(3 * stats.norm.isf(4 * rarest_of(TABLE, N_CASES))))
    assert "of one release's noise: 1.4e-08" in coverage.lines()[1]


@dataclass(frozen=True)
class Delicate(Bandit):
    """Cannot go on where noise is extreme, as where a matrix must be positive."""

    def answer(self, noisy, exact):
        if (np.abs(noisy - exact) > 6).any():
            raise np.linalg.LinAlgError("not positive definite")
        return noisy


def test_who_cannot_bear_wide_noise_is_walked_without_it():
    """With 16,000 cases of 8 releases, noise of its own size passes six deviations with probability 3e-4."""
    found, coverage = walk(Delicate(), TABLE, None, N_CASES, 0)
    assert found is None
    assert coverage.tail == 1.0
    assert "one release" not in coverage.lines()[1]
    assert coverage.lines()[2] == (
        "tails of noise were not searched: under wider noise it raised LinAlgError: not positive definite"
    )


def test_the_fault_in_the_tail_is_planted_where_tails_are_covered_and_found():
    inside, _ = values_of(BANDIT, TABLE)
    places = [planted_at_random(32, tuple(inside), 0.01, 0, has_digits=True, tail=tail) for tail in (1e-8, 1e-3)]
    assert [control.name for control in places[0]][-1] == "exact-in-the-tail"
    assert "exact-in-the-tail" not in [control.name for control in places[1]]
    found, _ = walk(places[0][-1].plant(BANDIT), TABLE, None, N_CASES, 1)
    assert found is not None
