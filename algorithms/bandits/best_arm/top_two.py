r"""Best-arm identification with fixed confidence: AdaP-TT and DP-TT on Laplace sums, on Gaussian ones, and on exact ones.

Source: Azize, Jourdan, Al Marjani and Basu (2023), On the complexity of differentially private best-arm identification with
fixed confidence, AdaP-TT, whose non-private algorithm is TTUCB of Jourdan and Degenne (2023); Jourdan and Azize (2025),
Optimal best arm identification under differential privacy, DP-TT.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bandana.algorithms.bandits.best_arm.rules import DifferenceRules, Judged, Rules
from bandana.algorithms.bandits.best_arm.transport import TransportRules
from bandana.algorithms.bandits.reward_noise import gaussian, laplace
from bandana.algorithms.decision import Decision
from bandana.algorithms.protocol import FloatArray, IntArray, Record
from bandana.privacy_core import Exact, Interval, Ledger, Mechanism, OpenPhase, PhaseSum
from bandana.privacy_core.checks import one_of, probability

FOREVER = np.iinfo(np.int64).max // 4
"""Rounds that are left once a test has stopped."""


class Sensitive(NamedTuple):
    """Sensitive state: exact statistics, which decisions never read."""

    phase: OpenPhase
    """The reward sum of the episode under way."""


class Released(NamedTuple):
    """All that decisions are made from; a function of noisy sums and of public counts."""

    mean: FloatArray
    """(n_reps, n_arms) estimates, in units of the range's width."""
    episodes: IntArray
    """(n_reps, n_arms) how many have ended."""
    leads: IntArray
    """(n_reps, n_arms) rounds in which the arm was the leader."""
    own: IntArray
    """(n_reps, n_arms) those of them in which it was pulled."""
    arm: IntArray
    """(n_reps,) the arm of the episode under way; the recommended one once the test has stopped."""
    left: IntArray
    """(n_reps,) rounds left in it."""
    clock: IntArray
    """(n_reps,) rounds played."""
    stopped: IntArray
    """(n_reps,) rounds after which the test stopped; 0 where it has not."""


@dataclass(frozen=True)
class InEpisodes(ABC):
    """Plays an arm for a public number of rounds, releases the sum of its rewards with noise, and goes on from there."""

    n_actions: int
    reward_range: Interval
    sums: PhaseSum

    @abstractmethod
    def learn(self, released: Any, ended: IntArray, mean: FloatArray) -> None:
        """Takes the noisy means of ended episodes into the estimates."""

    @abstractmethod
    def _go_on(self, released: Any, ended: IntArray) -> None:
        """Says what the replicates play whose episode has ended, and for how long."""

    def act(self, released: Any, context: FloatArray | None, step: int) -> IntArray:
        """(n_reps,) the arm of the episode, or the recommended one."""
        return np.asarray(released.arm.copy())

    def hold(self, released: Any, actions: IntArray) -> IntArray:
        """(n_reps,) rounds until the episode ends."""
        return np.asarray(released.left.copy())

    def absorb(self, sensitive: Sensitive, released: Any, record: Record, ledger: Ledger) -> tuple[Sensitive, Any]:
        """Adds to the episode's sum; where it is complete, releases it, and ends the test or begins the next episode."""
        phase = self.sums.add(sensitive.phase, record.rewards[:, 0], record.n_records)
        np.add(released.clock, record.n_records, out=released.clock)
        np.subtract(released.left, record.n_records, out=released.left)
        ended = np.flatnonzero(released.left == 0)
        if len(ended):
            phase, noisy, n_samples = self.sums.close(phase, ledger, None if len(ended) == ledger.n_reps else ended)
            self.learn(released, ended, noisy / (n_samples * self.reward_range.width))
            self._go_on(released, ended)
        return Sensitive(phase), released


@dataclass(frozen=True)
class TopTwo(InEpisodes):
    r"""Pulls a leader and its closest challenger in growing episodes until one arm is certainly the best.

    Every arm is pulled once. Then, at each episode's start, the rules name a leader, who may be the best arm, and a
    challenger, who is least certain to be worse; the leader is pulled if it had at most `share` of the rounds in which it
    led, else the challenger, until its number of pulls has grown by the factor `growth`. The sum of the episode's rewards is
    then released with noise. The test stops when the arm with the largest estimate is certainly the best, and recommends it.
    What is certain, and the proof that it errs seldom enough, is in `rules.DifferenceRules` for AdaP-TT, which compares
    differences of estimates, and in `transport.TransportRules` for DP-TT, which compares what each tells of its own mean.

    A run plays the recommended arm from then on: to its horizon, as a test does that is followed by what was decided.
    Nothing more is released. Stopping time and recommendation are functions of released values, and stand in the
    transcript; who sees the actions alone sees them too.

    Unit of privacy: one reward (one round). Claim: epsilon-DP of all actions, the recommendation and the stopping time (the
    paper's privacy theorem), central model; with Gaussian noise of deviation width / mu, mu-GDP, mu = sqrt(2 epsilon /
    alpha), which is (alpha, epsilon)-RDP.
    Sensitivity: a sum of rewards clipped to [low, high] moves by at most high - low when one is replaced; each reward lies
    in one released sum, and where an episode ends is a function of earlier releases: by the one-touch lemma
    (`docs/privacy.md`) the run costs what one release costs. A reward after the stop lies in none.
    Public: arms, horizon, the reward range, error, growth. Cost: O(n_arms) an episode, O(n_arms log T) episodes.

    Departures from the papers: an arm's episode is played at once, where the paper chooses between leader and challenger in
    every round; estimates change at the ends of episodes only, in both, so the stopping rule sees the same. The ledger then
    knows each sum's records as a span. Spread counts an arm's finished episodes. Leader and challenger take turns by
    counts, as in TTUCB, where the public code of AdaP-TT's authors draws a coin. That code stops by smaller thresholds
    than are proved; `beta_scale` below 1 has that effect.

    Attributes:
      n_actions: number of arms.
      reward_range: declared range of a reward; every reward is clipped to it.
      sums: the phase sum of an episode.
      rules: what is certain, who leads and who challenges, and the probability of error.
      share: beta of the paper, of the leader's rounds that go to itself.
      evenly: whether all arms are pulled equally often instead: a test with equal groups, by the same stopping rule.
    """

    rules: Rules
    share: float = 0.5
    evenly: bool = False

    def __post_init__(self) -> None:
        probability("share", self.share)
        if self.rules.n_actions != self.n_actions:
            raise ValueError(f"rules are for {self.rules.n_actions} arms, and there are {self.n_actions}: they must agree")

    def init(self, n_reps: int) -> tuple[Sensitive, Released]:
        """The first pull of the first arm."""
        table, each = (n_reps, self.n_actions), np.zeros(n_reps, dtype=np.int64)
        counts = np.zeros(table, dtype=np.int64)
        released = Released(
            np.zeros(table), counts, counts.copy(), counts.copy(), each, np.ones_like(each), each.copy(), each.copy()
        )
        return Sensitive(self.sums.init(n_reps)), released

    def decide(self, released: Released) -> Decision:
        """The recommendation, and when the test stopped."""
        return Decision(released.mean.argmax(axis=1), released.stopped.copy())

    def error_bound(self, means: FloatArray) -> float | None:
        """The probability that another arm than the best is recommended, at most; None where thresholds are scaled down."""
        return self.rules.error if self.rules.scale >= 1 else None

    def learn(self, released: Released, ended: IntArray, mean: FloatArray) -> None:
        """Takes the noisy means of ended episodes into the estimates."""
        arm = released.arm[ended]
        share = self.rules.episodes.shares[released.episodes[ended, arm]]
        released.mean[ended, arm] = (1 - share) * released.mean[ended, arm] + share * mean
        released.episodes[ended, arm] += 1

    def _go_on(self, released: Released, rows: IntArray) -> None:
        """Stops, or begins the next episode."""
        k = released.episodes[rows]
        arm, leader = k.argmin(axis=1), np.full(len(rows), -1)
        judged = np.flatnonzero((k > 0).all(axis=1))
        if len(judged):
            of = rows[judged]
            verdict = self._judge(released, of)
            stops = of[verdict.is_certain]
            released.stopped[stops] = released.clock[stops]
            released.arm[stops], released.left[stops] = verdict.best[verdict.is_certain], FOREVER
            if not self.evenly:
                is_own = released.own[of, verdict.leader] <= self.share * (released.leads[of, verdict.leader] + 1)
                arm[judged], leader[judged] = np.where(is_own, verdict.leader, verdict.challenger), verdict.leader
        goes_on = released.stopped[rows] == 0
        self._begin(released, rows[goes_on], arm[goes_on], leader[goes_on])

    def _judge(self, released: Released, rows: IntArray) -> Judged:
        return self.rules.judge(released.episodes[rows], released.mean[rows], released.clock[rows])

    def _begin(self, released: Released, rows: IntArray, arm: IntArray, leader: IntArray) -> None:
        length = self.rules.episodes.lengths[released.episodes[rows, arm]]
        released.arm[rows], released.left[rows] = arm, length
        led = leader >= 0
        np.add.at(released.leads, (rows[led], leader[led]), length[led])
        same = led & (leader == arm)
        np.add.at(released.own, (rows[same], arm[same]), length[same])


def _test(
    rules: type[Rules],
    n_arms: int,
    mechanism: Mechanism,
    reward_range: Interval,
    horizon: int,
    *,
    error: float,
    growth: float = 2.0,
    sampling: str = "top-two",
    share: float = 0.5,
    beta_scale: float = 1.0,
    **more: float | bool,
) -> TopTwo:
    if sampling not in SAMPLING:
        raise ValueError(f"sampling must be {' or '.join(SAMPLING)}, got {sampling!r}")
    rule = rules(n_arms, mechanism, reward_range.width, error, growth, horizon, beta_scale, **more)
    return TopTwo(n_arms, reward_range, PhaseSum(mechanism), rule, share, sampling == SAMPLING[1])


SAMPLING = ("top-two", "uniform")
"""Ways to choose arms: leader and challenger, or all equally often."""


def top_two(n_arms: int, error: float, reward_range: Interval, horizon: int, **more: float | str) -> TopTwo:
    """Top Two without noise, the non-private twin; further arguments are those of `adap_tt`."""
    return _test(DifferenceRules, n_arms, Exact(), reward_range, horizon, error=error, **more)  # type: ignore[arg-type]


def adap_tt(
    n_arms: int,
    epsilon: float,
    error: float,
    reward_range: Interval,
    horizon: int,
    calibration: str = "tight",
    **more: float | str,
) -> TopTwo:
    """AdaP-TT with total privacy epsilon-DP.

    Args:
      n_arms: at least 2.
      epsilon: above 0.
      error: the largest probability of a wrong recommendation, delta in the paper.
      reward_range: declared range of a reward.
      horizon: rounds after which a run ends, stopped or not.
      calibration: `as-known` or `tight`; their noise is the same, and meets the claim exactly.
      **more: `growth`, `sampling`, `share` and `beta_scale`, see `TopTwo` and `rules.Rules`.
    """
    one_of("calibration", calibration, ("as-known", "tight"))
    pools = calibration == "tight"
    mechanism = laplace(epsilon, reward_range)
    return _test(
        DifferenceRules, n_arms, mechanism, reward_range, horizon, error=error, pools=pools, **more  # type: ignore[arg-type]
    )  # fmt: skip


def adar_tt(
    n_arms: int, alpha: float, epsilon: float, error: float, reward_range: Interval, horizon: int, **more: float | str
) -> TopTwo:
    """The same with Gaussian noise and total privacy (alpha, epsilon)-RDP; other arguments as for `adap_tt`."""
    mechanism = gaussian(alpha, epsilon, reward_range)
    return _test(DifferenceRules, n_arms, mechanism, reward_range, horizon, error=error, **more)  # type: ignore[arg-type]


def transport_top_two(n_arms: int, error: float, reward_range: Interval, horizon: int, **more: float | str) -> TopTwo:
    """The non-private twin of `dp_tt`; further arguments are those of `adap_tt`."""
    return _transport(n_arms, Exact(), reward_range, horizon, error=error, **more)


def dp_tt(n_arms: int, epsilon: float, error: float, reward_range: Interval, horizon: int, **more: float | str) -> TopTwo:
    """A test that stops by transport costs, `transport.TransportRules`, with total privacy epsilon-DP.

    Arguments are those of `adap_tt`, but for the calibration, of which there is one.
    """
    return _transport(n_arms, laplace(epsilon, reward_range), reward_range, horizon, error=error, **more)


def gaussian_tt(
    n_arms: int, alpha: float, epsilon: float, error: float, reward_range: Interval, horizon: int, **more: float | str
) -> TopTwo:
    """The same with Gaussian noise and total privacy (alpha, epsilon)-RDP."""
    return _transport(n_arms, gaussian(alpha, epsilon, reward_range), reward_range, horizon, error=error, **more)


def _transport(n_arms: int, mechanism: Mechanism, reward_range: Interval, horizon: int, **more: float | str) -> TopTwo:
    offset = reward_range.low / reward_range.width
    return _test(TransportRules, n_arms, mechanism, reward_range, horizon, offset=offset, **more)  # type: ignore[arg-type]
