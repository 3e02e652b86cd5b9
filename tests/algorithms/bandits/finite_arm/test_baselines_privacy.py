"""The ledger's worst record pays epsilon, whatever was played, and each record is where the charges say it is."""

from __future__ import annotations

import numpy as np
import pytest
from doubles import ConstantNoise, OwnNoiseLedger
from hypothesis import given, settings
from hypothesis import strategies as st

from bandana.algorithms.bandits.finite_arm.episodic_ucb import adap_klucb, adap_ucb
from bandana.algorithms.bandits.finite_arm.successive_elimination import dp_se, successive_elimination
from bandana.algorithms.bandits.finite_arm.tree_ucb import dp_ucb, tree_ucb
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.run import run
from bandana.audits.searches.deterministic import search
from bandana.privacy_core import (
    BudgetExceeded,
    Interval,
    LaplaceEvent,
    LiveLedger,
    NonPrivateEvent,
    PureDP,
    Relation,
    ReproducibleNoise,
    ScriptedLedger,
)

UNIT = Interval(0.0, 1.0)
TABLE = RewardTable(np.random.default_rng(5).random((150, 3)), UNIT)
BUILDERS = {
    "adap-ucb": lambda epsilon, span=UNIT: adap_ucb(3, epsilon, 3.1, span, "printed"),
    "adap-ucb-tight": lambda epsilon, span=UNIT: adap_ucb(3, epsilon, 3.1, span, "tight"),
    "adap-klucb": lambda epsilon, span=UNIT: adap_klucb(3, epsilon, 3.1, span),
    # At any epsilon an epoch is over before the table is.
    "dp-se": lambda epsilon, span=UNIT: dp_se(3, epsilon, 0.1, span, min(1 / 64, epsilon / 40)),
    "dp-ucb": lambda epsilon, span=UNIT: dp_ucb(3, epsilon, 4.0, span, 150),
}
each = pytest.mark.parametrize("name", list(BUILDERS))


@each
@settings(max_examples=40)
@given(epsilon=st.floats(1e-3, 50.0), seed=st.integers(0, 10**6))
def test_the_worst_record_pays_epsilon(name, epsilon, seed):
    ledger = OwnNoiseLedger([seed, seed + 1])
    run(BUILDERS[name](epsilon), TABLE, ledger)
    ((event, count),) = ledger.worst_record().items()
    assert isinstance(event, LaplaceEvent)
    assert count == ((150).bit_length() if name == "dp-ucb" else 1)
    found = ledger.guarantee()
    assert isinstance(found, PureDP)
    assert epsilon * (1 - 1e-11) <= found.epsilon <= epsilon
    assert found.relation is Relation.REPLACE_REWARD


@each
def test_it_fits_its_own_budget_and_no_smaller_one(name):
    algorithm = BUILDERS[name](1.0)
    run(algorithm, TABLE, LiveLedger(2, ConstantNoise(), budget=PureDP(1.0, relation=Relation.REPLACE_REWARD)))
    small = LiveLedger(2, ConstantNoise(), budget=PureDP(0.99, relation=Relation.REPLACE_REWARD))
    with pytest.raises(BudgetExceeded):
        run(algorithm, TABLE, small)
    # A tree overspends with the node that gives the first record its last charge, after 127 rounds.
    assert small.noise.calls == (127 if name == "dp-ucb" else 0)


@pytest.mark.parametrize("name", [name for name in BUILDERS if name != "dp-ucb"])
def test_every_released_sum_is_that_of_its_span(name):
    ledger = OwnNoiseLedger([1, 2, 3], keeps_transcript=True)
    run(BUILDERS[name](1.0), TABLE, ledger)
    reached = np.zeros(3, dtype=int)
    for entry in ledger.transcript:
        reps = range(3) if entry.reps is None else entry.reps.tolist()
        for row, rep in enumerate(reps):
            start, stop = int(entry.records.start[row]), int(entry.records.stop[row])
            assert start == reached[rep], "phases follow one another without a gap"
            reached[rep] = stop
            assert entry.value[row] in TABLE.rewards[start:stop].sum(axis=0)
    assert (reached > 0).all()


@each
def test_one_replaced_reward_moves_what_reads_it_by_its_difference(name):
    algorithm, user = BUILDERS[name](1.0), 2
    live = LiveLedger(6, ReproducibleNoise(np.random.SeedSequence(3)), keeps_transcript=True)
    run(algorithm, TABLE, live)
    neighbor = TABLE.replaced(user, [1.0 if r < 0.5 else 0.0 for r in TABLE.rewards[user]])
    scripted = ScriptedLedger(6, live.transcript, keeps_values=True)
    run(algorithm, neighbor, scripted)
    scripted.finish()
    assert (scripted.diverged == -1).all()
    moved = np.zeros(6, dtype=int)
    for entry, other in zip(live.transcript, scripted.values, strict=True):
        reps = np.arange(6) if entry.reps is None else entry.reps
        inside = (entry.records.start <= user) & (user < entry.records.stop)
        changed = entry.mechanism.change(entry.value, other)
        assert (changed[~inside] == 0).all()
        assert (changed <= entry.mechanism.sensitivity).all()
        moved[reps] += changed > 0
    # The third record lies in nodes of 1, 4, 8, ..., 128 rounds, and not in that of the first two.
    assert (moved == (7 if name == "dp-ucb" else 1)).all()
    assert (np.abs(scripted.log_ratio) <= 1).all()


@each
def test_the_audit_without_statistics_finds_nothing_in_a_wider_range(name):
    """On [0, 1] the contract of the catalog searches."""
    wide = Interval(-2.0, 1.0)
    assert search(BUILDERS[name](1.0, wide), wide, None, max_examples=20) is None


@each
def test_rewards_are_clipped_to_the_declared_range(name):
    """A record outside the declared range counts as its nearest end: the sensitivity holds for any record."""
    wild = RewardTable(TABLE.rewards * 1000 - 500, Interval(-500.0, 500.0))
    ledger = LiveLedger(1, ConstantNoise(), keeps_transcript=True)
    run(BUILDERS[name](1.0), wild, ledger)
    for entry in ledger.transcript:
        assert (entry.value >= 0).all()
        assert entry.value.sum() <= entry.records.stop[0] - entry.records.start[0]


def test_twins_have_no_privacy():
    for twin in (tree_ucb(3, 4.0, UNIT, 150), successive_elimination(3, 0.1, UNIT, 1 / 64)):
        ledger = LiveLedger(1, ConstantNoise())
        run(twin, TABLE, ledger)
        assert ledger.worst_record() == {NonPrivateEvent(): 1}
        assert ledger.noise.calls == 0
