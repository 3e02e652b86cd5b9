"""Rewards that no action shows alone: a later parity, or two later actions together."""

import numpy as np
import pytest
from own_cases import UNIT, example

from bandana.audits.claims import parse
from bandana.audits.neighbors.candidates import candidate_pairs
from bandana.audits.outcome import MU, Effort
from bandana.flows.annexes.anything.functions.black_box import measure
from bandana.flows.annexes.anything.functions.drawn import Menu
from bandana.flows.annexes.anything.functions.drawn_bounds import screened_by

CLAIM = parse("gdp(mu=1, relation=reward)")
EFFORT = Effort(2000, 0.95, 1e-5, 1, 0)


def _play(show, n_arms=2):
    """Fair coins, of which one is changed by show(actions, bits of the paid rewards)."""

    def play(rewards, seed):
        n_reps, n_rounds, _ = rewards.shape
        actions = np.random.default_rng(seed).integers(0, n_arms, (n_reps, n_rounds))
        paid = np.take_along_axis(rewards, actions[:, :, None], axis=2)[:, :, 0] > 0.5
        actions[:, 12] = show(actions, paid.astype(int)) % n_arms
        return actions

    return play


BROKEN = {
    "two later actions agree": _play(lambda a, bits: a[:, 8] + bits[:, 3]),
    "parity of three": _play(lambda a, bits: a[:, 8] + a[:, 10] + bits[:, 3]),
    "parity of all later ones": _play(lambda a, bits: a[:, 4:12].sum(axis=1) + bits[:, 3]),
    "an earlier action is the key": _play(lambda a, bits: a[:, 0] + a[:, 1] + bits[:, 3]),
    "whether two records agree": _play(lambda a, bits: a[:, 8] + bits[:, 3] + bits[:, 5]),
    "shares modulo 3": _play(lambda a, bits: bits[:, 3] - a[:, 8], n_arms=3),
}


@pytest.mark.parametrize("name", BROKEN)
def test_shares_of_a_reward_are_found_on_drawn_rewards(name):
    n_arms = 3 if "3" in name else 2
    found = screened_by(BROKEN[name], Menu.of(UNIT), (16, n_arms), CLAIM, EFFORT)
    assert found.measurement.lower(MU) > 2
    (bound,) = found.measurement.bounds
    assert bound.attack in ("parity of actions and of other rewards", "two actions together")


@pytest.mark.parametrize("play", [example("black_box").play, _play(lambda a, bits: a[:, 12])])
def test_honest_actions_are_no_parity(play):
    found = screened_by(play, Menu.of(UNIT), (16, 2), CLAIM, EFFORT)
    assert not any("parity" in suspect.attack for suspect in found.suspects)
    assert found.measurement.lower(MU) < 1


@pytest.mark.parametrize("name", ["two later actions agree", "parity of three", "shares modulo 3"])
def test_shares_of_a_reward_are_found_on_one_pair(name):
    n_arms = 3 if "3" in name else 2
    pair = candidate_pairs(16, n_arms, UNIT, (3,), 0)[0]
    assert measure(BROKEN[name], (pair,), CLAIM, EFFORT).lower(MU) > 2
