"""Attacks: each finds what it is for, none sees the replays that bounds are taken from, and none finds what is not there."""

from dataclasses import replace

import numpy as np
import pytest
from nightly import first

from bandana.algorithms.bandits.finite_arm.episodic_ucb import adar_ucb
from bandana.algorithms.environments.tables import RewardTable
from bandana.audits.bounds import error_rates
from bandana.audits.neighbors.pairs import canary_pairs
from bandana.audits.replays import attacks
from bandana.audits.replays.attacks import ACTIONS, ALL, REPORT, TRANSCRIPT, Attack, of_view, split, strongest
from bandana.audits.replays.later_actions import Layout
from bandana.audits.replays.replay import Replays, replay
from bandana.privacy_core import Interval
from tests.later_features import later_features

UNIT = Interval(0.0, 1.0)
LEVEL = 0.05


def _replays(actions, record=0, n_actions=2):
    """Replays of which only the actions are known; the code is that of the first four."""
    later = actions[:, record + 1 :]
    code = later[:, :4] @ (n_actions ** np.arange(min(4, later.shape[1])))
    n, layout = len(actions), Layout(n_actions, later.shape[1])
    return Replays(np.zeros(n), code, np.zeros(n), later_features(actions, record, n_actions), layout)


def _promise(data, neighbor):
    errors = error_rates.Errors.count(data, neighbor, error_rates.choose_threshold(data, neighbor, LEVEL))
    return error_rates.mu_lower(errors, LEVEL)


def _bound(data, neighbor, chosen):
    """The bound on mu from the held-out halves; the selecting part chooses the threshold."""
    (_, select, held), (_, select_n, held_n) = split(data), split(neighbor)
    threshold = error_rates.choose_threshold(chosen.scorer(select), chosen.scorer(select_n), LEVEL)
    return error_rates.mu_lower(error_rates.Errors.count(chosen.scorer(held), chosen.scorer(held_n), threshold), LEVEL)


def _adar(n, side, seed, record=0, rounds=24, epsilon=1.0, n_arms=2):
    pair = canary_pairs(RewardTable(np.zeros((rounds, n_arms)), UNIT), (record,))[0]
    return replay(adar_ucb(n_arms, 2.0, epsilon, 3.1, UNIT, "tight"), pair, side, n, np.random.SeedSequence(seed))


# --- the split -------------------------------------------------------------------------------------------------------


def test_a_quarter_teaches_a_quarter_chooses_and_half_is_bounded():
    replays = _replays(np.random.default_rng(0).integers(0, 2, (103, 9)))
    parts = split(replays)
    assert [len(part) for part in parts] == [25, 26, 52]
    assert np.array_equal(np.concatenate([part.actions for part in parts]), replays.actions)
    with pytest.raises(ValueError, match="at least 4"):
        split(replays[:3])


def _spoiled(replays, rows):
    """The same but for some rows, which hold nonsense."""
    changed = {}
    for name in ("log_ratio", "action_code", "report_log_ratio", "actions"):
        array = getattr(replays, name).copy()
        array[rows] = 3
        changed[name] = array
    return replace(replays, **changed)


def test_an_attack_never_sees_what_is_held_out():
    data, neighbor = (_adar(4000, side, 1 + side) for side in (False, True))
    probe = _adar(500, True, 9)
    chosen = strongest(of_view(ACTIONS), data, neighbor, _promise)
    blind = strongest(of_view(ACTIONS), _spoiled(data, slice(2000, None)), _spoiled(neighbor, slice(2000, None)), _promise)
    assert (blind.attack.name, blind.promise) == (chosen.attack.name, chosen.promise)
    assert np.array_equal(blind.scorer(probe), chosen.scorer(probe))
    for attack in ALL:
        fitted = attack.fit(split(data).train, split(neighbor).train)
        other = attack.fit(*(split(_spoiled(side, slice(1000, None))).train for side in (data, neighbor)))
        assert np.array_equal(fitted(probe), other(probe))
    seen = strongest(of_view(ACTIONS), _spoiled(data, slice(0, 1000)), neighbor, _promise)
    assert not np.array_equal(seen.scorer(probe), chosen.scorer(probe))


def test_the_one_that_promises_most_is_taken():
    data, neighbor = (_replays(np.full((40, 4), side)) for side in (0, 1))
    told = []

    def constant(name, value):
        def fit(train, train_n):
            told.append((name, len(train), len(train_n)))
            return lambda replays: np.full(len(replays), value)

        return Attack(name, ACTIONS, fit)

    tried = [constant("a", 1.0), constant("b", 3.0), constant("c", 3.0 * (1 + 4e-16)), constant("d", 2.0)]
    chosen = strongest(tried, data, neighbor, lambda scores, scores_n: scores.mean() + 0 * scores_n.mean())
    assert (chosen.attack.name, chosen.promise) == ("b", 3.0)
    assert told == [(name, 10, 10) for name in "abcd"]
    with pytest.raises(ValueError, match="all of one view"):
        strongest(ALL, data, neighbor, _promise)
    with pytest.raises(ValueError, match="at least one"):
        strongest([], data, neighbor, _promise)


def test_views_are_those_that_there_are():
    assert [attack.name for attack in of_view(TRANSCRIPT)] == ["exact likelihood ratio"]
    assert [attack.name for attack in of_view(REPORT)] == ["exact likelihood ratio of the report"]
    assert len(of_view(ACTIONS)) == 5
    assert len({attack.name for attack in ALL}) == len(ALL)
    with pytest.raises(ValueError, match=r"view must be one of \['actions', 'report', 'transcript'\], got 'all'"):
        of_view("all")


# --- each attack -----------------------------------------------------------------------------------------------------


def test_what_is_known_is_not_learned():
    replays = Replays(np.array([1.0, -2.0]), np.zeros(2, dtype=int), np.array([0.5, 0.0]))
    scores = [attack.fit(replays, replays)(replays).tolist() for attack in (*of_view(TRANSCRIPT), *of_view(REPORT))]
    assert scores == [[1.0, -2.0], [0.5, 0.0]]


def _planted(kind, n, seed):
    """Both sides' actions over twelve rounds; the second differs in one way."""
    rng = np.random.default_rng(seed)
    sides = [(rng.random((n, 12)) < 0.5).astype(int) for _ in range(2)]
    if kind == "how often":
        sides[1] = (rng.random((n, 12)) < 0.65).astype(int)
    elif kind == "when":
        starts = (np.where(rng.random(n) < 0.6, 12, rng.integers(first, first + 4, n)) for first in (2, 5))
        sides = [np.where(np.arange(12) < start[:, None], 0, 1) for start in starts]
    elif kind == "together":
        for flips, side in enumerate(sides):
            side[:, 3:] = (side[:, 1] ^ side[:, 2] ^ flips)[:, None]
    return tuple(_replays(side) for side in sides)


@pytest.mark.parametrize(
    ("name", "kind", "least"),
    [
        ("counted log odds", "together", 2.0), ("action counts", "how often", 0.75), ("first divergence", "when", 0.5),
        ("logistic regression", "how often", 0.75), ("boosted stumps", "how often", 0.75), ("boosted stumps", "when", 0.5),
    ],
)  # fmt: skip
def test_each_attack_finds_what_it_is_for(name, kind, least):
    (attack,) = (attack for attack in ALL if attack.name == name)
    data, neighbor = _planted(kind, 8000, 3)
    chosen = strongest([attack], data, neighbor, _promise)
    scores = chosen.scorer(data)
    assert scores.dtype == np.float64
    assert scores.shape == (8000,)
    assert np.isfinite(scores).all()
    assert _bound(data, neighbor, chosen) > least


def test_a_sequence_that_was_never_seen_tells_nothing():
    data, neighbor = (Replays(np.zeros(2), np.array([side, 2])) for side in (0, 1))
    scores = attacks.fit_codes(data, neighbor)(Replays(np.zeros(4), np.array([0, 1, 2, 9])))
    assert scores == pytest.approx([-np.log(3), np.log(3), 0, 0])


def test_sides_without_actions_are_refused():
    bare = Replays(np.zeros(4), np.zeros(4, dtype=int))
    for name in ("action counts", "first divergence", "logistic regression", "boosted stumps"):
        (attack,) = (attack for attack in ALL if attack.name == name)
        with pytest.raises(ValueError, match="later actions of one layout"):
            attack.fit(bare, bare)


def test_a_horizon_of_many_rounds_is_binned():
    rng = np.random.default_rng(0)
    sides = [np.where(np.arange(400) < rng.integers(low, 400, (3000, 1)), 0, 1) for low in (1, 150)]
    data, neighbor = (_replays(side) for side in sides)
    (attack,) = (attack for attack in ALL if attack.name == "first divergence")
    assert _bound(data, neighbor, strongest([attack], data, neighbor, _promise)) > 0.5


# --- audits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("record", "n_arms", "least"), first(1, [(2, 2, 0.5), (0, 2, 0.7), (1, 4, 0.7)]))
def test_later_actions_give_most_of_a_bandits_privacy_away(record, n_arms, least):
    """The transcript is exactly 1-GDP; a bound above 1 has a probability of 5 %, stated for this seed."""
    data, neighbor = (_adar(60_000, side, 4 + side, record, 64, n_arms=n_arms) for side in (False, True))
    assert least < _bound(data, neighbor, strongest(of_view(ACTIONS), data, neighbor, _promise)) <= 1


@pytest.mark.nightly
def test_two_sides_alike_show_nothing_in_nearly_all_audits():
    """200 audits of the same law on both sides, at 95 %: more than 24 bounds above 0 have a probability below 1e-4."""
    n, n_audits = 600, 200
    replays = _adar(2 * n * n_audits, False, 6)
    found = []
    for index in range(n_audits):
        data, neighbor = (replays[(2 * index + side) * n :][:n] for side in (0, 1))
        found.append(_bound(data, neighbor, strongest(of_view(ACTIONS), data, neighbor, _promise)))
    assert sum(bound > 0 for bound in found) <= 24


def test_an_arm_in_the_middle_is_told_from_its_neighbors():
    """The third run is of arm 1 on one side, of arm 0 or 2 on the other; no count and no sum of arms tells them."""
    (attack,) = (attack for attack in ALL if attack.name == "logistic regression")
    rng, sides = np.random.default_rng(5), []
    for patterns in (((0, 2, 1, 0), (2, 0, 1, 2)), ((0, 1, 2, 0), (2, 1, 0, 2))):
        runs = np.concatenate([np.ones((2, 1), dtype=int), np.array(patterns)], axis=1)
        sides.append(np.repeat(runs, [5, 2, 2, 2, 2], axis=1)[rng.integers(0, 2, 4000)])
    mixed = rng.random(4000) < 0.2
    data, neighbor = (_replays(np.where(mixed[:, None], other, side), n_actions=3) for side, other in (sides, sides[::-1]))
    assert _bound(data, neighbor, strongest([attack], data, neighbor, _promise)) > 1
