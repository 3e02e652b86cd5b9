"""The audit of a plain function: rewards and a seed go in, actions come out, and nothing else is seen.

The function plays a data set and its neighbor many times. A score for "this was the neighbor" is learned from the actions
after the canary on one part of the replays; another part chooses the best of three learners and its threshold; the rest,
which nothing was chosen on, gives the bound. Such an audit sees less than one of the ledger, so that its bounds are lower;
they hold for any function whose replicates are independent, and assume nothing about its noise.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr
from scipy.stats import chi2

from bandana.algorithms.entry import Claim
from bandana.algorithms.environments.episodes import Table
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.algorithms.ties import first_largest
from bandana.audits.bounds import methods, power
from bandana.audits.bounds.methods import method_of
from bandana.audits.claims import ClaimError, Quantity, binary_divergence, binary_rho
from bandana.audits.neighbors.pairs import Pair
from bandana.audits.outcome import SAMPLING, Effort, Outcome, StatedBound, TriedControl
from bandana.audits.replays.attacks import ACTIONS
from bandana.audits.replays.classifiers import features, learn_codes, learn_logistic, learn_stumps
from bandana.audits.replays.measure import Measurement, PlannedBound, rounded, state
from bandana.audits.searches.sampling import too_few
from bandana.privacy_core import ZCDP, GaussianDP, Guarantee, Interval, RenyiDP, TrustModel

BLOCK = 4096
_MAIN_SHARE = 0.8
_DEPENDENT = 1e-9

Play = Callable[..., Any]


class BrokenFunction(ValueError):  # noqa: N818  (it says what the function is)
    """A function whose answers cannot be audited; the message says why, and what to change."""


class RewardStream:
    """Rewards that are read as they are earned: each round once, the played arm only.

    Attributes:
      n_reps: replicates, each of which plays on its own.
      n_rounds: rounds.
      n_arms: arms.
    """

    def __init__(self, rewards: FloatArray) -> None:
        self._rewards = rewards
        self.n_reps, self.n_rounds, self.n_arms = rewards.shape
        self.actions = np.full((self.n_reps, self.n_rounds), -1, dtype=np.int64)
        self._round = 0

    def pull(self, actions: Any) -> FloatArray:
        """(n_reps,) rewards of the given arms in the next round.

        Raises:
          BrokenFunction: the rounds are over, or the actions are no arms, one a replicate.
        """
        if self._round == self.n_rounds:
            raise BrokenFunction(f"it pulls after the last of {self.n_rounds} rounds")
        self.actions[:, self._round] = _checked_actions(np.asarray(actions), (self.n_reps,), self.n_arms, "pull takes")
        earned = self._rewards[np.arange(self.n_reps), self._round, self.actions[:, self._round]]
        self._round += 1
        return np.asarray(earned)


def _checked_actions(actions: np.ndarray, shape: tuple[int, ...], n_arms: int, who: str) -> IntArray:
    if actions.shape != shape or not np.issubdtype(actions.dtype, np.integer):
        raise BrokenFunction(f"{who} whole numbers of shape {shape}, got shape {actions.shape} of {actions.dtype}")
    if actions.size and (actions.min() < 0 or actions.max() >= n_arms):
        raise BrokenFunction(f"{who} arms in [0, {n_arms}), got {int(actions.min())} to {int(actions.max())}")
    return actions.astype(np.int64)


def takes_stream(play: Play) -> bool:
    """Whether the function's first parameter is called `stream`: then it pulls, and need not return its actions."""
    return next(iter(inspect.signature(play).parameters), "") == "stream"


def play_rows(play: Play, table: Table, n_reps: int, seed: int) -> IntArray:
    """(n_reps, n_rounds) actions of independent replicates on one table.

    Raises:
      BrokenFunction: what comes back are no actions, one a replicate and round.
    """
    rewards = np.broadcast_to(table.rewards, (n_reps, *table.rewards.shape))  # read-only
    actions = _played(play, rewards, seed)
    if not takes_stream(play):
        return _checked_actions(actions, (n_reps, table.n_users), table.n_actions, "it must return")
    if (actions[:, -1] < 0).any():
        raise BrokenFunction(f"it must pull once in each of {table.n_users} rounds, got {int((actions[0] >= 0).sum())}")
    return actions


def _played(play: Play, rewards: FloatArray, seed: int) -> IntArray:
    """What the function returns, or the arms that it pulls, unchecked."""
    if not takes_stream(play):
        return np.asarray(play(rewards, seed))
    stream = RewardStream(rewards)
    play(stream, seed)
    return stream.actions


def even_table(rounds: int, n_arms: int, reward_range: Interval) -> RewardTable:
    """Every reward at the lower end: all arms are equal, so that a single reward can tip a decision."""
    return RewardTable(np.full((rounds, n_arms), reward_range.low), reward_range)


def check(play: Play, table: RewardTable, seed: int, n_reps: int = 64) -> None:
    """Refuses a function whose replays would not be what the bounds take them for.

    Raises:
      BrokenFunction: wrong shape, another answer to the same seed, the same answer to every seed, or one draw of noise for
        all replicates.
    """
    seeds = np.random.SeedSequence(seed, spawn_key=(2,)).generate_state(8, np.uint32).tolist()
    plays = [play_rows(play, table, n_reps, number) for number in seeds]
    if not np.array_equal(play_rows(play, table, n_reps, seeds[0]), plays[0]):
        raise BrokenFunction(
            f"two calls with the seed {seeds[0]} return different actions: draw all randomness from the seed, as in "
            "numpy.random.default_rng(seed), and keep nothing between calls; else nobody can repeat the audit"
        )
    if all(np.array_equal(played, plays[0]) for played in plays):
        if all((played == played[0]).all() for played in plays):
            raise BrokenFunction(
                f"it returns the same actions for each of {len(seeds)} seeds and in each replicate: it draws no noise on "
                "this data set, so that nothing can hide a record that matters; is the seed unused?"
            )
        raise BrokenFunction(
            f"it returns the same actions for each of {len(seeds)} seeds: it ignores its seed, so that more calls give no "
            "new replays; draw all randomness from it"
        )
    if all((played == played[0]).all() for played in plays):
        raise BrokenFunction(
            f"all {n_reps} replicates of a call play the same, and other seeds play otherwise: one draw of noise serves all "
            "replicates; draw noise of shape (n_reps, ...), as each row is a run of its own"
        )


@dataclass(frozen=True)
class Played:
    """Replays of one side.

    Attributes:
      actions: (n_replays, n_rounds)
      block: (n_replays,) which call each came from.
    """

    actions: IntArray
    block: IntArray

    def __getitem__(self, rows: slice) -> Played:
        return Played(self.actions[rows], self.block[rows])


def replay(play: Play, table: Table, n_replays: int, seed: np.random.SeedSequence) -> Played:
    """Many replays of one data set, in calls of at most 4096 rows with a seed each."""
    sizes = [min(BLOCK, n_replays - start) for start in range(0, n_replays, BLOCK)]
    seeds = seed.generate_state(len(sizes), np.uint32).tolist()
    rows = [play_rows(play, table, size, number) for size, number in zip(sizes, seeds, strict=True)]
    return Played(np.concatenate(rows), np.repeat(np.arange(len(sizes)), sizes))


# --- scores learned from actions -----------------------------------------------------------------------------------

Scorer = Callable[[IntArray], FloatArray]


def learn(data: IntArray, neighbor: IntArray, record: int, n_arms: int) -> dict[str, Scorer]:
    """Three scores, larger where the neighbor is likelier, taught on the given replays."""
    x = np.concatenate([features(side, record, n_arms) for side in (data, neighbor)])
    y = np.concatenate([np.zeros(len(data)), np.ones(len(neighbor))])
    logistic, stumps = learn_logistic(x, y), learn_stumps(x, y)
    codes = learn_codes(data[:, record + 1 :], neighbor[:, record + 1 :], n_arms)
    return {
        "counted log odds": lambda actions: codes(actions[:, record + 1 :]),
        "logistic regression": lambda actions: logistic(features(actions, record, n_arms)),
        "boosted stumps": lambda actions: stumps(features(actions, record, n_arms)),
    }


# --- the audit -----------------------------------------------------------------------------------------------------


def levels(confidence: float, n_pairs: int) -> tuple[float, float]:
    """Shares of the failure probability: for the claim's own quantity on each pair, and for epsilon at delta."""
    failure = 1 - confidence
    return failure * _MAIN_SHARE / n_pairs, failure * (1 - _MAIN_SHARE) / n_pairs


def promised(data: FloatArray, neighbor: FloatArray, quantity: Quantity, level: float, seed: int) -> float:
    """The bound that a score promises on the replays which choose between scores."""
    method, parameters = method_of(quantity, seed, is_learned=True)
    return methods.bound(method, rounded(data), rounded(neighbor), level, **parameters)


def measure(play: Play, pairs: tuple[Pair, ...], claim: Claim, effort: Effort, n_pairs: int | None = None) -> Measurement:
    """Two bounds a pair, on the claim's own quantity and on epsilon, and the held-out scores.

    Args:
      play: the function.
      pairs: neighbors to try.
      claim: whose quantity is bounded.
      effort: how many replays, and the confidence.
      n_pairs: how many pairs share the failure probability, where it is not the number of those given.

    Raises:
      BrokenFunction: see `play_rows`, or the replays of a call are not independent.
    """
    main, rest = levels(effort.confidence, n_pairs or len(pairs))
    own, epsilon = Quantity.of(claim.stated), Quantity("epsilon", effort.delta)
    found: list[StatedBound] = []
    scores: dict[str, tuple[FloatArray, FloatArray]] = {}
    seeds = np.random.SeedSequence(effort.seed, spawn_key=(3,)).spawn(2 * len(pairs))
    half, quarter = effort.replays // 2, effort.replays // 4
    for index, pair in enumerate(pairs):
        sides = [replay(play, table, effort.replays, seeds[2 * index + side])
                 for side, table in enumerate((pair.data, pair.neighbor))]  # fmt: skip
        scorers = learn(sides[0].actions[:quarter], sides[1].actions[:quarter], pair.record, pair.data.n_actions)
        for quantity, level in ((own, main), (epsilon, rest)):
            held = {name: [scorer(side.actions[quarter:half]) for side in sides] for name, scorer in scorers.items()}
            worth = [promised(data, neighbor, quantity, level, effort.seed) for data, neighbor in held.values()]
            name = list(scorers)[first_largest(np.array(worth))]  # scorers that learned the same promise the same
            test = tuple(rounded(scorers[name](side.actions[half:])) for side in sides)
            for side, score in zip(sides, test, strict=True):
                _check_independence(score, side.block[half:])
            key = f"{name.replace(' ', '_')}{index}"
            scores[key] = (test[0], test[1])
            planned = PlannedBound(ACTIONS, quantity, 1.0)
            found.append(state(planned, name, pair, scores[key], key, level, effort))
    return Measurement(tuple(found), scores)


def _check_independence(scores: FloatArray, block: IntArray) -> None:
    """Refuses replays of one call that resemble each other more than those of different calls, p below 1e-9."""
    finite = np.where(np.isfinite(scores), scores, np.sign(scores) * 1e6)
    names, which = np.unique(block, return_inverse=True)
    sizes = np.bincount(which)
    variance = float(finite.var())
    if len(names) < 2 or variance <= 0:
        return
    means = np.bincount(which, weights=finite) / sizes
    between = float((sizes * (means - finite.mean()) ** 2).sum() / variance)
    if float(chi2.sf(between, len(names) - 1)) < _DEPENDENT:
        raise BrokenFunction(
            "the replicates of one call resemble each other more than those of other calls: they share noise, so that they "
            "are not independent replays; draw noise of shape (n_reps, ...)"
        )


def find_pairs(play: Play, tried: list[Pair], seed: int, n_replays: int = 2048, n_pairs: int = 2) -> tuple[Pair, ...]:
    """The pairs on which a pilot tells most; its replays are used for nothing else, so that bounds stay valid.

    Args:
      play: the function.
      tried: candidates.
      seed: of the pilot, which has seeds of its own.
      n_replays: of the pilot, on each side of each candidate.
      n_pairs: how many to return.
    """
    children = np.random.SeedSequence(seed, spawn_key=(5,)).spawn(2 * len(tried))
    half, worth = n_replays // 2, []
    for index, pair in enumerate(tried):
        data, neighbor = (
            replay(play, table, n_replays, children[2 * index + side]).actions
            for side, table in enumerate((pair.data, pair.neighbor))
        )
        codes = learn_codes(data[:half, pair.record + 1 :], neighbor[:half, pair.record + 1 :], pair.data.n_actions)
        held = [codes(side[half:, pair.record + 1 :]) for side in (data, neighbor)]
        worth.append(promised(held[0], held[1], Quantity("mu"), 0.05, seed))
    order = sorted(range(len(tried)), key=lambda index: -round(worth[index], 9))
    return tuple(tried[index] for index in order[:n_pairs])


def echo_error(stated: Guarantee, factor: float) -> float:
    """How often a randomized echo of one bit must lie to leak `factor` times what the claim allows."""
    match stated:
        case GaussianDP(mu=mu):
            return float(ndtr(-factor * mu / 2))
        case RenyiDP(alpha=alpha, epsilon=epsilon):
            return _lie_of(lambda lie: binary_divergence(lie, lie, alpha), factor * epsilon)
        case ZCDP(rho=rho):
            return _lie_of(lambda lie: binary_rho(lie, lie), factor * rho)
    return float(1 / (1 + np.exp(factor * stated.epsilon)))  # type: ignore[union-attr]


def _lie_of(leak: Callable[[float], float], target: float) -> float:
    low, high = 1e-300, 0.5
    for _ in range(100):
        middle = np.sqrt(low * high) if low < 1e-3 else (low + high) / 2
        low, high = (middle, high) if leak(float(middle)) > target else (low, middle)
    return float(low)


def echoing(play: Play, record: int, lie: float, reward_range: Interval) -> Play:
    """The function with a leak: the action after the record repeats that record's reward, but for a lie now and then."""
    middle = (reward_range.low + reward_range.high) / 2

    def planted(rewards: FloatArray, seed: int) -> IntArray:
        actions = np.array(_played(play, rewards, seed))
        rows = np.arange(len(actions))
        bit = rewards[rows, record, actions[:, record]] > middle
        coins = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(4,)))).random(len(actions))
        actions[:, record + 1] = np.where(coins < lie, ~bit, bit).astype(np.int64)
        return actions

    return planted


def counting_again(play: Play, record: int, times: int) -> Play:
    """The function with a fault in its data: the record enters several times, in place of those after it."""

    def planted(rewards: FloatArray, seed: int) -> IntArray:
        row = np.array(rewards[0])  # replicates are given the same data
        row[record : record + times] = row[record]
        return _played(play, np.broadcast_to(row, np.shape(rewards)), seed)

    return planted


_TIMES = 8


def planted_faults(play: Play, claim: Claim, pair: Pair) -> tuple[tuple[str, str, Play], ...]:
    """Name, fault in words, and the faulty function; each keeps the claim."""
    span = pair.data.reward_range
    doubled = echo_error(claim.stated, 2.0)
    return (
        (
            "reward-echoed", "the action after the record repeats the record's reward (no privacy)",
            echoing(play, pair.record, 0.0, span),
        ),
        (
            "leak-doubled", "the same, but it lies as often as leaks twice what is claimed",
            echoing(play, pair.record, doubled, span),
        ),
        (
            "record-counted-8-times", "the record enters eight times, in place of those after it",
            counting_again(play, pair.record, _TIMES),
        ),
    )  # fmt: skip


def examine(
    play: Play,
    claim: Claim,
    pairs: tuple[Pair, ...],
    effort: Effort,
    subject: Mapping[str, str],
    about: Mapping[str, str],
) -> Outcome:
    """Audits a function that `check` accepts, in the actions alone.

    Nobody looks into the function, so that faults are planted at its two ends: leaks in what it returns, and a record that
    is counted several times in what it is given. The latter passes through the function's own noise: where it is missed,
    the actions show too little for a PASS.

    Args:
      play: (rewards, seed) -> actions, see `play_rows`.
      claim: what it promises.
      pairs: data sets and neighbors whose rewards lie in their declared range; the first one is where faults are planted.
      effort: replays and confidence; `examples` does not matter here.
      subject: see `Outcome`.
      about: see `Outcome`.

    Raises:
      ClaimError: a claim of local privacy.
      ValueError: a canary in the last round, after which nothing is played.
      BrokenFunction: see `measure`.
    """
    check_trust(claim)
    if late := [pair for pair in pairs if pair.record > pair.data.n_users - 2]:
        raise ValueError(
            f"a canary must lie in [0, {late[0].data.n_users - 1}), before the last round, got {late[0].record}"
        )
    quantity = Quantity.of(claim.stated)
    limit = quantity.limit(claim.stated)
    found = measure(play, pairs, claim, effort)
    level = levels(effort.confidence, len(pairs))[0]
    n = effort.replays - effort.replays // 2
    caveats = too_few(limit, level, n, effort, PlannedBound(ACTIONS, quantity, 1.0))
    tried = []
    for name, fault, faulty in planted_faults(play, claim, pairs[0]):
        worst = measure(faulty, pairs[:1], claim, effort, len(pairs)).lower(quantity)
        tried.append(TriedControl(name, fault, (SAMPLING,), (SAMPLING,) if worst > limit else (), worst, limit))
    method, parameters = method_of(quantity, effort.seed, is_learned=True)
    return Outcome(
        subject=subject,
        claim=claim,
        effort=effort,
        failure=1 - effort.confidence,
        bounds=found.bounds,
        scores=found.scores,
        events=None,
        counterexample=None,
        noise_finding=None,
        controls=tuple(tried),
        power=power.smallest_factor_caught(method, parameters, level, limit, n),
        caveats=caveats,
        about=about,
    )


def check_trust(claim: Claim) -> None:
    """Refuses a claim of local privacy.

    Raises:
      ClaimError: it is one.
    """
    if claim.trust is TrustModel.LOCAL:
        raise ClaimError("a function shows its actions only, and local privacy is a promise on messages: audit its ledger")
