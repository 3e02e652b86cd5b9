"""The walk over a whole horizon: a leak that begins after the last round of a replay is met, and honest algorithms pass."""

from dataclasses import dataclass

import numpy as np
import pytest
from own_cases import UNIT, example

from bandana.algorithms.environments.tables import RewardTable, random_table
from bandana.audits.claims import parse
from bandana.audits.coverage import Coverage
from bandana.audits.faults.late import LateLeak, late_leak
from bandana.audits.outcome import DETERMINISTIC, Effort
from bandana.audits.searches import deterministic
from bandana.audits.searches.deterministic import Deterministic
from bandana.audits.searches.horizon import Walked, positions, walk_horizon
from bandana.audits.searches.request import Request
from bandana.audits.trial import Trial, Whole

HORIZON = 600
TABLE = random_table(HORIZON, 2, UNIT, 0)
WALKED = Walked(HORIZON, 64)
bandit = example("own_bandit").EpisodicGreedy


def test_positions_are_both_ends_powers_of_two_and_where_phases_begin_and_end():
    assert positions(20, [0, 6, 12], 64).tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 15, 16, 17, 18, 19]
    many = positions(100_000, range(0, 100_000, 10), 64)
    assert len(many) == 64
    assert {0, 99_999, 65_535, 65_536, 65_537} <= set(many.tolist())
    assert positions(100_000, [], 4).tolist()[::3] == [0, 99_999]


def test_an_honest_bandit_passes_all_rounds():
    violation, walked = walk_horizon(bandit(), TABLE, 1, private_records=False)
    assert violation is None
    assert walked.rounds == HORIZON
    assert walked.alone == 64


@pytest.mark.parametrize(("begins", "length"), [(33, 4), (128, 4), (HORIZON - 1, 4), (128, 1)])
def test_a_released_state_that_holds_rewards_late_is_found_on_as_many_rounds_as_it_takes(begins, length):
    """Also where each round is a phase, and nobody plays beforehand to see where phases begin."""
    violation, _ = walk_horizon(LateLeak(bandit(length=length), begins), TABLE, 1, private_records=False)
    assert violation is not None
    assert violation.kind == "released state"
    assert begins < len(violation.case.rewards) <= begins + 5


@dataclass(frozen=True)
class PeeksLate(bandit):
    """From round 400 on, the sign of the open episode's exact sum decides what is played."""

    def absorb(self, sensitive, released, record, ledger):
        sensitive, released = super().absorb(sensitive, released, record, ledger)
        late = (released.clock >= 400) & (record.rewards[:, 0] > record.n_records / 2)
        total = released.total + np.where(late, 1e6, 0.0)[:, None] * np.array([0.0, 1.0])
        return sensitive, released._replace(total=total)


@dataclass(frozen=True)
class DrawsLessLate(bandit):
    """From round 300 on, sums of twice the rewards leave with noise for once."""

    def absorb(self, sensitive, released, record, ledger):
        weight = np.where(released.clock >= 300, 2.0, 1.0)
        doubled = record._replace(rewards=record.rewards * weight[:, None])
        return super().absorb(sensitive, released, doubled, ledger)


@pytest.mark.parametrize(
    ("fault", "kinds"), [(PeeksLate, ("decision", "released state")), (DrawsLessLate, ("sensitivity",))]
)
def test_late_decisions_and_late_sensitivities_are_found(fault, kinds):
    violation, _ = walk_horizon(fault(), TABLE, 1, private_records=False)
    assert violation is not None
    assert violation.kind in kinds
    assert len(violation.case.rewards) > 300


def test_late_faults_begin_beyond_every_replay_and_within_the_horizon():
    control = late_leak(64, 100_000)
    assert control.caught_by == (DETERMINISTIC,)
    assert "From record 128 on" in control.fault
    assert control.plant(bandit()).begins == 128
    assert late_leak(64, 100).plant(bandit()).begins == 99


def test_the_coverage_says_what_was_replayed_and_what_was_walked():
    coverage = Coverage(("actions",), (0, 1), 2, (0.0, 1.0), 8, 0.5, walked=90_000, walked_alone=64, horizon=100_000)
    assert coverage.lines()[0].startswith("replayed 2 of 100,000 rounds; walked 90,000 of 100,000: 64 records alone")
    assert not any("walked" in line for line in Coverage(("actions",), (0,), 2, (0.0,), 8, 0.5).lines())


def test_noise_that_depends_on_nothing_passes_on_a_table_with_values_between():
    table = RewardTable(np.round(np.random.default_rng(1).random((HORIZON, 2)), 2), UNIT)
    assert walk_horizon(bandit(mu=0.1), table, 3, private_records=False)[0] is None


@pytest.mark.parametrize(("until_caught", "walked"), [(True, [4 * 12, HORIZON]), (False, [HORIZON])])
def test_a_planted_fault_is_walked_for_soon_after_the_last_replayed_record_first(monkeypatch, until_caught, walked):
    lengths = []

    def noted(_algorithm, table, *_):
        lengths.append(table.n_users)
        return None, WALKED

    monkeypatch.setattr(deterministic, "walk_horizon", noted)
    short = random_table(12, 2, UNIT, 0)
    trial = Trial(bandit(), parse("gdp(mu=1, relation=reward)"), short, (0,), whole=Whole(bandit(), TABLE, HORIZON))
    effort = Effort(replays=1000, confidence=0.95, delta=1e-5, examples=4, seed=1)
    Deterministic().examine(Request(trial, effort, 0.05, until_caught=until_caught))
    assert lengths == walked
