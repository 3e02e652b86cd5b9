"""Plain functions, of which only the actions are seen."""

from dataclasses import replace

import numpy as np
import pytest
from nightly import first
from own_cases import UNIT, example
from scipy.special import ndtr, ndtri
from whole_evidence import assert_follows_from_its_scores

from bandana.audits.bounds.methods import bound
from bandana.audits.claims import ClaimError, Quantity, binary_divergence, binary_rho, parse
from bandana.audits.evidence import write
from bandana.audits.neighbors.candidates import candidate_pairs
from bandana.audits.outcome import MU, Effort, Setup, Verdict
from bandana.flows.annexes.anything.functions.black_box import (
    Played,
    examine,
    features,
    find_pairs,
    learn,
    measure,
    replay,
)
from bandana.flows.annexes.anything.functions.function_faults import echo_error
from bandana.flows.annexes.anything.functions.plays import adapted, check, even_table, play_rows
from bandana.flows.annexes.anything.outputs.bounds import check_calls
from bandana.flows.annexes.anything.outputs.calls import BrokenSubject

PLAY, LEAKY = example("black_box").play, example("black_box").leaky
TABLE = even_table(16, 2, UNIT)
CLAIM = parse("gdp(mu=1, relation=reward)")
EFFORT = Effort(replays=4000, confidence=0.95, delta=1e-5, examples=1, seed=2)
SUBJECT = {"kind": "function", "name": "play", "source sha256": "0"}


def _coin(record, lie):
    """Plays at random, but for one action: after the record it tells the record's reward, with a lie now and then."""

    def play(rewards, seed):
        rng = np.random.default_rng(seed)
        n_reps, n_rounds, _ = rewards.shape
        actions = rng.integers(0, 2, (n_reps, n_rounds))
        bit = rewards[np.arange(n_reps), record, actions[:, record]] > 0.5
        actions[:, record + 1] = np.where(rng.random(n_reps) < lie, ~bit, bit)
        return actions

    return play


def _ignoring(rewards, seed):
    return np.random.default_rng(seed).integers(0, 2, rewards.shape[:2])


def _pairs(play, probes=(), n_pairs=2):
    return find_pairs(play, candidate_pairs(16, 2, UNIT, probes, 0), 0, n_replays=1000, n_pairs=n_pairs)


@pytest.mark.parametrize("play", [PLAY, LEAKY, _coin(3, 0.2), _ignoring])
def test_functions_that_can_be_audited_are_accepted(play):
    check(play, TABLE, 0)


def _stream(stream, seed):
    """`PLAY`, one round at a time."""
    rng, rows = np.random.default_rng(seed), np.arange(stream.n_reps)
    total, pulls = np.zeros((stream.n_reps, 2)), np.zeros((stream.n_reps, 2))
    for start in range(0, stream.n_rounds, 4):
        arm = np.argmax(total / np.maximum(pulls, 1), axis=1)
        explores = rng.random(stream.n_reps) < 0.1
        arm = np.where(explores, rng.integers(0, 2, stream.n_reps), arm)
        if start < 8:
            arm = np.full(stream.n_reps, start // 4)
        earned = sum(stream.pull(arm) for _ in range(4))
        total[rows, arm] += earned + rng.standard_normal(stream.n_reps)
        pulls[rows, arm] += 4


def test_a_stream_is_played_as_an_array_is():
    play = adapted(_stream, (16, 2), UNIT)
    check(play, TABLE, 0)
    table = candidate_pairs(16, 2, UNIT, (), 0)[-1].neighbor
    assert np.array_equal(play_rows(play, table, 50, 3), play_rows(PLAY, table, 50, 3))


def _short(stream, seed):
    stream.pull(np.zeros(stream.n_reps, dtype=int))


def _long(stream, seed):
    for _ in range(stream.n_rounds + 1):
        stream.pull(np.zeros(stream.n_reps, dtype=int))


@pytest.mark.parametrize(
    ("play", "message"),
    [
        (lambda rewards, seed: None, r"it must return whole numbers of shape \(64, 16\), got shape \(\) of object"),
        (lambda rewards, seed: np.zeros(16, dtype=int), r"of shape \(64, 16\), got shape \(16,\)"),
        (lambda rewards, seed: np.zeros(rewards.shape[:2]), "whole numbers .* of float64"),
        (lambda rewards, seed: np.full(rewards.shape[:2], 2), r"arms in \[0, 2\), got 2 to 2"),
        (lambda rewards, seed: np.full(rewards.shape[:2], -1), r"arms in \[0, 2\), got -1 to -1"),
        (
            lambda rewards, seed: np.random.default_rng().integers(0, 2, rewards.shape[:2]),
            "draw all randomness from the seed",
        ),
        (lambda rewards, seed: _ignoring(rewards, 0), "ignores its seed"),
        (
            lambda rewards, seed: np.broadcast_to(_ignoring(rewards[:1], seed), rewards.shape[:2]),
            "one draw of noise serves all replicates",
        ),
        (adapted(_short, (16, 2), UNIT), "must pull once in each of 16 rounds, got 1"),
        (adapted(_long, (16, 2), UNIT), "pulls after the last of 16 rounds"),
        (
            adapted(lambda stream, seed: stream.pull(np.zeros(3, dtype=int)), (16, 2), UNIT),
            r"pull takes whole numbers of shape \(64,\), got shape \(3,\)",
        ),
    ],
)
def test_what_is_wrong_with_a_function_is_told(play, message):
    with pytest.raises(BrokenSubject, match=message):
        check(play, TABLE, 0)


def test_rewards_are_read_only():
    def cheat(rewards, seed):
        rewards[:] = 0

    with pytest.raises(ValueError, match="read-only"):
        check(cheat, TABLE, 0)


def test_replicates_that_share_noise_in_part_are_refused():
    def shared(rewards, seed):
        actions = _ignoring(rewards, seed)
        if seed % 2:
            actions[:, 4:] = 1
        return actions

    check(shared, TABLE, 0)
    with pytest.raises(BrokenSubject, match="resemble each other more than those of other calls"):
        measure(shared, _pairs(shared), CLAIM, Effort(40_000, 0.95, 1e-5, 1, 0))


def test_independent_replicates_are_never_refused():
    rng = np.random.default_rng(0)
    for _ in range(50):
        check_calls(rng.normal(size=8000), np.repeat(np.arange(4), 2000))
    check_calls(np.zeros(10), np.arange(10))
    check_calls(np.array([np.inf, -np.inf, 1.0]), np.zeros(3, dtype=int))


def test_replays_are_reproducible_and_come_in_blocks():
    one, two = (replay(PLAY, TABLE, 5000, np.random.SeedSequence(1)) for _ in range(2))
    assert isinstance(one, Played)
    assert np.array_equal(one.actions, two.actions)
    assert np.bincount(one.block).tolist() == [4096, 904]


def test_features_look_at_later_actions_only():
    actions = np.random.default_rng(0).integers(0, 3, (10, 16))
    other = actions.copy()
    other[:, :6] = 0
    assert np.array_equal(features(actions, 5, 3), features(other, 5, 3))
    assert features(actions, 14, 3).shape[0] == 10
    assert not np.array_equal(features(actions, 4, 3), features(other, 4, 3))


@pytest.mark.parametrize("learner", ["counted log odds", "logistic regression", "boosted stumps", "boosted trees"])
def test_each_learner_finds_a_planted_signal(learner):
    """A share of 0.7 against 0.3 in one early action: mu = 2 * 0.524; the learned score certifies most of it."""
    rng, n = np.random.default_rng(1), 8000
    sides = [rng.integers(0, 2, (n, 16)) for _ in range(2)]
    for side, share in zip(sides, (0.3, 0.7), strict=True):
        side[:, 4] = rng.random(n) < share
    score = learn(sides[0][:4000], sides[1][:4000], 3, 2)[learner]
    held = [score(side[4000:]) for side in sides]
    assert 0.5 < bound("mu-curve", *held, 0.05) < 1.15


def test_an_interaction_is_found_by_counting():
    """Two early actions are equal on one side and differ on the other; neither alone says anything."""
    rng, n = np.random.default_rng(1), 8000
    sides = [np.zeros((n, 16), dtype=int) for _ in range(2)]
    for side, flips in zip(sides, (False, True), strict=True):
        first = rng.integers(0, 2, n)
        side[:, 4], side[:, 5:] = first, (first ^ flips)[:, None]
    score = learn(sides[0][:4000], sides[1][:4000], 3, 2)["counted log odds"]
    assert score(sides[0][4000:]).max() < score(sides[1][4000:]).min()


CLAIMS = [
    "gdp(mu=1, relation=reward)", "rdp(alpha=2, epsilon=1, relation=reward)", "zcdp(rho=0.5, relation=reward)",
    "pure(epsilon=1, relation=reward)", "approx(epsilon=1, delta=1e-5, relation=reward)",
]  # fmt: skip


@pytest.mark.parametrize("text", CLAIMS)
def test_a_planted_leak_is_as_large_as_it_says(text):
    stated = parse(text).stated
    quantity = Quantity.of(stated)
    for factor in (0.5, 1.0, 2.0):
        lie = echo_error(stated, factor)
        leak = {
            "mu": lambda lie: -2 * ndtri(lie),
            "divergence": lambda lie: binary_divergence(lie, lie, quantity.alpha),
            "rho": lambda lie: binary_rho(lie, lie),
            "epsilon": lambda lie: np.log((1 - quantity.delta - lie) / lie),
        }[quantity.name](lie)
        assert leak == pytest.approx(factor * quantity.limit(stated), rel=1e-3)


@pytest.mark.parametrize(("text", "replays"), first(1, [(CLAIMS[0], 8000), *((text, 20_000) for text in CLAIMS)]))
def test_a_leak_beyond_the_claim_fails_and_one_at_it_does_not(text, replays):
    claim = parse(text)
    record, effort = 3, replace(EFFORT, replays=replays, confidence=0.9999)  # one honest play in 10,000 fails at most
    for factor, expected in ((1.0, False), (1.6, True)):
        play = _coin(record, echo_error(claim.stated, factor))
        outcome = examine(play, claim, _pairs(play, (record,), n_pairs=1), effort, SUBJECT, Setup())
        assert (outcome.verdict is Verdict.FAIL) is expected, (factor, outcome.numbers)


def test_the_private_example_passes_and_its_evidence_agrees_with_its_scores(tmp_path):
    about = Setup(seed=EFFORT.seed, code_sha256="0" * 64)
    outcome = examine(PLAY, CLAIM, _pairs(PLAY), EFFORT, SUBJECT, about)
    assert outcome.verdict is Verdict.NOT_REFUTED, outcome.reasons
    assert "a function shows no ledger to account" in outcome.reasons[0]
    three = outcome.numbers[MU]
    assert three.accounted is None
    assert 0.4 < three.measured < 1
    write(tmp_path / "e.npz", outcome)
    assert_follows_from_its_scores(tmp_path / "e.npz")


def test_the_leaky_example_fails():
    outcome = examine(LEAKY, CLAIM, _pairs(LEAKY), EFFORT, SUBJECT, Setup())
    assert outcome.verdict is Verdict.FAIL
    assert outcome.numbers[MU].measured > 3


def test_the_pilot_finds_the_record_that_matters():
    play = _coin(3, 0.1)
    assert _pairs(play, n_pairs=1)[0].record == 3
    assert _pairs(play, (2, 3, 5), n_pairs=1)[0].record == 3


def test_data_independent_play_is_accepted_and_not_refuted():
    for play in (_ignoring, lambda rewards, seed: np.zeros(rewards.shape[:2], dtype=int)):
        check(play, TABLE, 0)
        outcome = examine(play, CLAIM, _pairs(PLAY), EFFORT, SUBJECT, Setup())
        assert not outcome.broken
        assert outcome.numbers[MU].measured < 0.5


def test_too_few_replays_are_inconclusive():
    few = Effort(1000, 0.9999999, 1e-5, 1, 0)
    outcome = examine(PLAY, parse("gdp(mu=5, relation=reward)"), _pairs(PLAY), few, SUBJECT, Setup())
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert "1000 replays are too few" in outcome.reasons[0]


def test_local_claims_trajectories_and_late_canaries_are_refused():
    with pytest.raises(ClaimError, match="a promise on messages"):
        examine(PLAY, parse("gdp(mu=1, relation=reward, trust=local)"), _pairs(PLAY), EFFORT, SUBJECT, Setup())
    with pytest.raises(ClaimError, match="one reward is replaced"):
        examine(PLAY, parse("gdp(mu=1, relation=trajectory)"), _pairs(PLAY), EFFORT, SUBJECT, Setup())
    with pytest.raises(ValueError, match=r"a canary must lie in \[0, 15\), before the last round, got 15"):
        examine(PLAY, CLAIM, (candidate_pairs(16, 2, UNIT, (15,), 0)[0],), EFFORT, SUBJECT, Setup())


@pytest.mark.nightly
def test_bounds_cover_the_truth_of_a_coin():
    """60 audits at 95 %: more than 11 misses have a probability below 1e-4."""
    lie, claim, misses, found = float(ndtr(-0.5)), CLAIM, 0, []
    play = _coin(3, lie)
    pair = candidate_pairs(16, 2, UNIT, (3,), 0)[:1]
    for seed in range(60):
        found.append(measure(play, tuple(pair), claim, Effort(2000, 0.95, 1e-5, 1, seed)).lower(MU))
        misses += found[-1] > 1.0
    assert misses <= 11
    assert np.median(found) > 0.7
