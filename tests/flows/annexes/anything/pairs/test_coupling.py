"""Generators that the data seed: found by one seed on both data sets, whatever the replays show.

Replays cannot see these leaks, since fresh seeds make fresh noise on either side; nothing here is left to chance.
"""

import functools
import random
import zlib
from dataclasses import replace

import numpy as np
import pytest
from numpy.random import default_rng

from bandana import audit
from bandana.audits.claims import parse
from bandana.audits.outcome import Setup
from bandana.flows.annexes.anything.outputs.calls import inspect_call
from bandana.flows.annexes.anything.pairs.coupling import compare
from bandana.flows.annexes.anything.pairs.release import draw, examine

OFF, ON = [0.0, 0.0, 1.0], [0.0, 1.0, 1.0]


def digest(data):
    return zlib.crc32(np.asarray(data).tobytes())


def by_hash(data, seed):
    return float(np.sum(data)) + np.random.default_rng([seed, digest(data)]).laplace()


def by_sum(data, seed):
    return float(np.sum(data)) + default_rng(seed + int(np.sum(data))).laplace()


def by_old_state(data, seed):
    return float(np.sum(data)) + np.random.RandomState((seed + digest(data)) % 2**32).laplace()


def by_sequence(data, seed):
    return float(np.sum(data)) + np.random.default_rng(np.random.SeedSequence([seed, digest(data)])).laplace()


def by_python(data, seed):
    return float(np.sum(data)) + random.Random(f"{seed}-{sum(data)}").gauss(0, 1)


class ByObject:
    def __call__(self, data, seed):
        return by_hash(data, seed)


def honest(data, seed):
    return float(np.sum(data)) + np.random.default_rng(seed).laplace()


def one_each(data, seed):
    """A generator for each high record: another number of them on the neighbor, and none of their seeds is the data's."""
    return sum(np.random.default_rng([seed, place]).laplace() for place in range(int(np.sum(data))))


def honest_state(data, seed):
    return float(np.sum(data)) + np.random.RandomState(seed).laplace() + random.Random(seed).gauss(0, 1)


@pytest.mark.parametrize(
    "function", [by_hash, by_sum, by_old_state, by_sequence, by_python, ByObject(), functools.partial(by_sum)]
)
def test_a_generator_that_the_data_seed_is_found(function):
    found = compare(inspect_call(function, OFF, ON, 0), OFF, ON, 0)
    assert "seeds another generator on the neighbor" in found.finding


@pytest.mark.parametrize(
    "function", [honest, one_each, honest_state, functools.partial(honest), lambda data, rng: rng.normal()]
)
def test_generators_that_the_seed_alone_seeds_are_not(function):
    found = compare(inspect_call(function, OFF, ON, 0), OFF, ON, 0)
    assert not found.finding
    assert found.n_seen


@pytest.mark.parametrize("function", [lambda data: np.random.default_rng().normal(), lambda data, seed: 1.0 + seed % 3])
def test_what_is_not_seen_is_said(function):
    caller = inspect_call(function, OFF, ON, 0)
    assert compare(caller, OFF, ON, 0).n_seen == 0


def test_nothing_is_left_patched():
    before = np.random.default_rng, np.random.RandomState, random.Random, default_rng
    compare(inspect_call(by_sum, OFF, ON, 0), OFF, ON, 0)
    assert before == (np.random.default_rng, np.random.RandomState, random.Random, default_rng)


def test_noise_that_the_data_seed_is_inconclusive_whatever_replays_say():
    caller = inspect_call(by_hash, OFF, ON, 0)
    claim = parse("pure(epsilon=1.5, relation=pair)")
    outcome = examine(draw(caller, OFF, ON, 2000, 0, 60.0), claim.stated)
    assert outcome.verdict == "NOT REFUTED"
    assert "generators that the data seed" in outcome.coverage[1]
    outcome = replace(outcome, coupling=compare(caller, OFF, ON, 0))
    assert outcome.verdict == "INCONCLUSIVE"
    assert "its noise depends on the data" in outcome.reasons[0]
    assert outcome.recorded(claim, {}, Setup()).verdict.value == "INCONCLUSIVE"
    outcome = replace(outcome, coupling=compare(inspect_call(honest, OFF, ON, 0), OFF, ON, 0))
    assert outcome.verdict == "NOT REFUTED"
    assert "generators" not in outcome.coverage[1]


def round_robin(rewards, seed):
    return np.broadcast_to(np.arange(rewards.shape[1]) % 2, rewards.shape[:2])


def test_a_function_that_ignores_its_rewards_is_not_refuted():
    """Every score is equal then, which otherwise would forbid silence."""
    outcome = audit(round_robin, "gdp(mu=1, relation=reward)", replays=4000, isolated=False).outcome
    assert outcome.ignores_data
    assert outcome.verdict == "NOT REFUTED"
