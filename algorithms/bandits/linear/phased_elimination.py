r"""Linear bandits on a fixed set of arms, by phased elimination on G-optimal designs: AdaR-GOPE, its pure-DP variant, GOPE.

Source: Azize and Basu, "Renyi Differentially Private Bandits", Algorithm 3, Theorems 7 and 8, Discussion 2; without noise
it is the algorithm of Lattimore and Szepesvari, "Bandit Algorithms" (2018), chapter 22.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bandana.algorithms.bandits.linear import phases_numba
from bandana.algorithms.bandits.linear.designs import Design, optimal_design, rank_of
from bandana.algorithms.bandits.linear.phase_noise import (
    UP,
    ArmNoise,
    GaussianNoise,
    Goal,
    LaplaceNoise,
    PhaseNoise,
    WhitenedNoise,
)
from bandana.algorithms.protocol import FloatArray, IntArray, Record
from bandana.privacy_core import Exact, Gaussian, Interval, Laplace, Ledger, OpenPhase, Relation
from bandana.privacy_core.checks import order, positive, probability
from bandana.privacy_core.sums import contents, empty_phase, reopen

_DESIGN_GAP = 1e-3
_FOREVER = 2**60
_MOST_REMEMBERED = 2**27
"""Bytes of plans that are kept for other replicates."""


class Sensitive(NamedTuple):
    """Sensitive state: exact statistics, which decisions never read."""

    phase: OpenPhase
    """The reward sums of the phase under way, one a slot: total is (n_reps, n_slots)."""


class Released(NamedTuple):
    """All that decisions are made from; a function of noisy phase sums and of public features."""

    active: np.ndarray
    """(n_reps, n_arms) bool, the arms that were not eliminated."""
    estimate: FloatArray
    """(n_reps, n_arms), estimated <theta, a> in the last phase that an arm was active in; NaN before the first."""
    phase: IntArray
    """(n_reps,) the phase under way, from 1."""
    slots: IntArray
    """(n_reps, n_slots) the arms that the phase plays, in this order."""
    counts: IntArray
    """(n_reps, n_slots) for how many rounds each; 0 in unused slots, which come last."""
    slot: IntArray
    """(n_reps,) the slot under way."""
    left: IntArray
    """(n_reps,) its rounds left."""


class Plan(NamedTuple):
    """A phase, as a function of its index and of the active arms: public."""

    slots: IntArray
    """(n_slots,)"""
    counts: IntArray
    """(n_slots,)"""
    encode: FloatArray
    """(n_slots, n_outputs)"""
    shift: FloatArray
    """(n_outputs,) what the rewards' public origin adds to the released vector."""
    predict: FloatArray
    """(n_arms, n_outputs), 0 for arms that are out."""
    width: FloatArray
    """(n_arms,)"""


Group = tuple[Plan, IntArray]
"""A plan, and the rows that are in it."""


@dataclass(frozen=True)
class PhasedElimination:
    r"""Phases l = 1, 2, ...: learn all active arms up to beta_l, then drop those that are worse by more than that allows.

    Rewards are origin + <theta, a> + noise, in a declared range. In phase l, arm a is played ceil(n_l pi_l(a)) times, pi_l
    the G-optimal design on the active arms; the phase's sums are released once, theta is estimated by least squares from
    this phase alone, and an arm stays if its interval's upper end reaches the largest lower end. beta_l = 2^-l times half
    the width of the range: 2^-l for rewards in [-1, 1], as in the paper. With probability 1 - delta the best arm always
    stays, and arms active in phase l + 1 are worse by at most 4 beta_l.

    Unit of privacy: one reward (one round). Claim: (alpha, epsilon)-RDP of all actions (Theorem 7), central model; with
    Laplace noise epsilon-DP. The released vector of a phase has the width of the range as its sensitivity (see the
    `noise`), each reward is in one phase, and phases and active arms are functions of earlier releases: one release of
    noise multiplier 1/mu touches a reward, and by the one-touch lemma (`docs/privacy.md`) the run is mu-GDP with mu =
    sqrt(2 epsilon / alpha), which is (alpha, epsilon)-RDP with equality. A phase that the horizon cuts off releases nothing.
    The order of arms does not matter: a plan is a function of the set of active features, taken in lexicographic order, so
    that of the many designs that are equally good the same one is found however arms are listed, and permuted features with
    permuted rewards give the same run, permuted, bit for bit.
    Public: features, horizon, origin, the reward range. Cost: a design a phase and active set, then O(n_arms d) a phase.

    Departures from the paper:
      The sets {R_t} and t_(l+1) of steps 8 and 9 overlap or leave a gap of one round; phases follow one another here.
      The proof of Theorem 7 says that the sensitivity is 1 where its noise is for 2; it is the width of the range.
      Theorem 7 takes an expectation over actions that "have the same law"; see the one-touch lemma.
      Theorem 15 needs designs on at most d (d + 1) / 2 arms: Frank-Wolfe exceeds that, so a Caratheodory step follows; the
        gap of each design is at most 0.1 percent, checked, and all lengths and widths use the true leverages.
      Where the active arms no longer span the space, all is done in their span; a single one is played to the end.
      Where the range is not [-1, 1], the paper's unit of reward is half its width, and `origin` is where <theta, a> = 0.
      `WhitenedNoise` (tight) and `LaplaceNoise` state their own.

    Attributes:
      features: one vector an arm, of norm at most 1; together they span the space.
      reward_range: declared range of a reward; every reward is clipped to it.
      noise: where noise enters and how long phases are.
      delta: probability that some interval fails, at `beta_scale` 1.
      beta_scale: factor on all widths; below 1 phases are shorter and intervals may fail more often.
      origin: mean reward of the zero vector.
    """

    features: tuple[tuple[float, ...], ...]
    reward_range: Interval
    noise: PhaseNoise
    delta: float
    beta_scale: float
    origin: float

    def __post_init__(self) -> None:
        probability("delta", self.delta)
        positive("beta_scale", self.beta_scale)
        if not math.isfinite(self.origin):
            raise ValueError(f"origin must be a finite number, got {self.origin!r}")
        checked_features(self.features)

    def __getstate__(self) -> dict[str, Any]:
        # Without the plans: a copy for another thread or process remembers its own.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def n_actions(self) -> int:
        """Number of arms."""
        return len(self.features)

    @property
    def dimension(self) -> int:
        """Dimension d of the features."""
        return len(self.features[0])

    @property
    def n_slots(self) -> int:
        """The most arms that a phase plays."""
        return min(self.n_actions, self.dimension * (self.dimension + 1) // 2)

    @property
    def n_outputs(self) -> int:
        """Entries of a released vector."""
        return self.noise.n_outputs(self.n_slots, self.dimension)

    def init(self, n_reps: int) -> tuple[Sensitive, Released]:
        """Phase 1, all arms active."""
        active = np.ones(self.n_actions, dtype=bool)
        plan = self.plan(1, active)
        released = Released(
            active=np.tile(active, (n_reps, 1)),
            estimate=np.full((n_reps, self.n_actions), np.nan),
            phase=np.ones(n_reps, dtype=np.int64),
            slots=np.tile(plan.slots, (n_reps, 1)),
            counts=np.tile(plan.counts, (n_reps, 1)),
            slot=np.zeros(n_reps, dtype=np.int64),
            left=np.full(n_reps, plan.counts[0]),
        )
        return Sensitive(empty_phase(n_reps, (self.n_slots,))), released

    def act(self, released: Released, context: FloatArray | None, step: int) -> IntArray:
        """(n_reps,) the arm of the slot under way."""
        return np.asarray(released.slots[np.arange(len(released.slot)), released.slot])

    def hold(self, released: Released, actions: IntArray) -> IntArray:
        """(n_reps,) rounds until the slot ends."""
        return released.left.copy()

    def absorb(self, sensitive: Sensitive, released: Released, record: Record, ledger: Ledger) -> tuple[Sensitive, Released]:
        """Adds to the slot's sum; where the phase is complete, releases it, drops arms and plans the next phase."""
        phase = sensitive.phase
        ended = np.empty(len(record.user), dtype=np.int64)
        n_ended = phases_numba.advance(
            phase.total, phase.stop, released.counts, released.slot, released.left,
            record.rewards[:, 0], record.n_records, ended,
        )  # fmt: skip
        if n_ended:
            self._close(phase, released, ledger, ended[:n_ended])
        return sensitive, released

    def _close(self, phase: OpenPhase, released: Released, ledger: Ledger, reps: IntArray) -> None:
        groups = list(self._plans(released, reps))
        noisy = self._release(phase, groups, ledger, reps)
        for plan, rows in groups:
            phases_numba.eliminate(
                noisy, rows, reps, plan.shift, plan.predict, plan.width, released.active, released.estimate
            )
        released.phase[reps] += 1
        released.slot[reps] = 0
        for plan, rows in self._plans(released, reps):
            mine = reps[rows]
            released.slots[mine], released.counts[mine], released.left[mine] = plan.slots, plan.counts, plan.counts[0]

    def _release(self, phase: OpenPhase, groups: list[Group], ledger: Ledger, reps: IntArray) -> FloatArray:
        """(len(reps), n_outputs) the noisy vectors of the phases that ended; the next ones are opened."""
        chosen = None if len(reps) == ledger.n_reps else reps
        total, span = contents(phase, chosen)
        value = np.empty((len(reps), self.n_outputs))
        for plan, rows in groups:
            phases_numba.encode(total, rows, plan.encode, value)
        noisy = ledger.release(self.noise.mechanism, value, records=span, reps=chosen)
        reopen(phase, chosen)
        return noisy

    def _plans(self, released: Released, reps: IntArray) -> Iterator[Group]:
        """The plan of each phase under way, and which of `reps` are in it."""
        active, phase = released.active[reps], released.phase[reps]
        if (phase == phase[0]).all() and (active == active[0]).all():
            yield self.plan(int(phase[0]), active[0]), np.arange(len(reps))
            return
        groups: dict[tuple[int, bytes], list[int]] = {}
        for row, (index, packed) in enumerate(zip(phase.tolist(), np.packbits(active, axis=1), strict=True)):
            groups.setdefault((index, packed.tobytes()), []).append(row)
        for rows in groups.values():
            yield self.plan(int(phase[rows[0]]), active[rows[0]]), np.array(rows)

    # --- plans: public, a function of phase and active arms alone; remembered because replicates share them -------------

    @cached_property
    def _array(self) -> FloatArray:
        return np.array(self.features)

    @cached_property
    def _in_order(self) -> IntArray:
        """(n_arms,) the arms by their features, lexicographically: an order that does not depend on how they are listed."""
        return np.lexsort(self._array.T[::-1])

    @cached_property
    def _most_plans(self) -> int:
        numbers = self.n_slots * (self.n_outputs + 2) + self.n_actions * (self.n_outputs + 2) + self.n_outputs
        return max(1, _MOST_REMEMBERED // (8 * numbers))

    @cached_property
    def _known_plans(self) -> dict[tuple[int, bytes], Plan]:
        return {}

    @cached_property
    def _known_designs(self) -> dict[bytes, Design]:
        return {}

    def plan(self, phase: int, active: np.ndarray) -> Plan:
        """The phase on the active arms (n_arms,) bool; remembered."""
        packed = np.packbits(active).tobytes()
        known = self._known_plans.get((phase, packed))
        if known is None:
            if len(self._known_plans) >= self._most_plans:
                self._known_plans.clear()
                self._known_designs.clear()
            known = self._known_plans[phase, packed] = self._planned(phase, active, packed)
        return known

    def _planned(self, phase: int, active: np.ndarray, packed: bytes) -> Plan:
        arms = self._in_order[active[self._in_order]]
        plan = Plan(
            slots=np.zeros(self.n_slots, dtype=np.int64),
            counts=np.zeros(self.n_slots, dtype=np.int64),
            encode=np.zeros((self.n_slots, self.n_outputs)),
            shift=np.zeros(self.n_outputs),
            predict=np.zeros((self.n_actions, self.n_outputs)),
            width=np.zeros(self.n_actions),
        )
        if len(arms) == 1:
            plan.slots[0], plan.counts[0] = arms[0], _FOREVER
            return plan
        design = self._known_designs.get(packed)
        if design is None:
            design = self._known_designs[packed] = optimal_design(self._array[arms], _DESIGN_GAP)
        goal = self.goal(phase, design.rank, len(arms))
        x, played = design.coordinates, np.flatnonzero(design.weights)
        at_design = _whitened(x, x[played], design.weights[played])
        n = self.noise.samples(design.leverage, at_design @ at_design[played].T, goal)
        counts = np.minimum(np.maximum(np.ceil(n * design.weights[played]), 1), _FOREVER)
        whitened = _whitened(x, x[played], counts)
        # The arm that costs most comes first: the run's first reward is then one at which privacy is exact.
        cost = np.einsum("mr,mr->m", whitened[played], whitened[played])
        first = np.argsort(-np.round(cost / cost.max(), 9), kind="stable")
        played, counts = played[first], counts[first].astype(np.int64)
        reading = self.noise.reading(whitened, played, goal)
        m, p = reading.encode.shape
        plan.slots[:m], plan.counts[:m] = arms[played], counts
        plan.encode[:m, :p] = reading.encode
        plan.shift[:p] = self.origin * (counts @ reading.encode)
        plan.predict[arms, :p] = reading.predict
        plan.width[arms] = self.beta_scale * reading.width
        return plan

    def goal(self, phase: int, rank: int, n_active: int) -> Goal:
        """Precision that phase l has to reach about `n_active` arms in `rank` dimensions."""
        half = self.reward_range.width / 2
        target = half * 2.0**-phase / self.beta_scale
        return Goal(phase, target, half**2, rank, n_active, self.n_actions, self.delta)

    def most_rounds(self, phase: int) -> float:
        """A phase lasts at most so many rounds, whichever arms are active."""
        largest = self.dimension * (1 + _DESIGN_GAP)
        cross = np.full((1, self.n_slots), largest)
        goal = self.goal(phase, self.dimension, self.n_actions)
        return self.noise.samples(np.array([largest]), cross, goal) + self.n_slots

    def regret_bound(self, horizon: ArrayLike) -> FloatArray:
        r"""Cumulative regret that is exceeded with probability at most delta, at every horizon; all constants are explicit.

        As in the proof of Theorem 8, but summed over the phases instead of rounded to a formula: with probability 1 - delta
        an arm of phase l is worse than the best by at most min(8 beta_l, width), so the regret is at most the sum of that
        over the rounds. It falls with l, so that phases of `most_rounds`, the most that they last, give the largest sum.

        Args:
          horizon: numbers of rounds, any shape, which the regret has too, in units of reward.

        Raises:
          ValueError: `beta_scale` is below 1, for which nothing is proved.

        Source: Azize and Basu, Appendix C.3.
        """
        if self.beta_scale < 1:
            raise ValueError(f"the regret bound holds for a beta_scale of at least 1, got {self.beta_scale!r}")
        left = np.array(horizon, dtype=float)
        bound, phase = np.zeros(left.shape), 1
        while (left > 0).any():
            rounds = np.minimum(left, self.most_rounds(phase))
            bound += rounds * self.reward_range.width * min(1.0, 4 * 2.0**-phase)
            left -= rounds
            phase += 1
        return bound


def _whitened(coordinates: FloatArray, played: FloatArray, counts: FloatArray) -> FloatArray:
    """(k, rank) V^-1/2 x, up to a rotation, for V = sum counts x x^T over the rows of `played`."""
    root = np.linalg.cholesky(played.T @ (counts[:, None] * played))
    return np.ascontiguousarray(np.linalg.solve(root, coordinates.T).T)


def checked_features(features: ArrayLike) -> FloatArray:
    """(n_arms, d) features of linear arms.

    Raises:
      ValueError: they are no matrix, fewer than 2, not finite, longer than 1, or do not span the space.
    """
    try:
        array = np.array(features, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError("features must be numbers, one vector of the same length an arm") from error
    if array.ndim != 2 or len(array) < 2 or not array.shape[1]:
        raise ValueError(f"features must be of shape (n_arms, d) with at least 2 arms, got shape {array.shape}")
    if not np.isfinite(array).all():
        arm, i = (int(index) for index in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"features must be finite; arm {arm} has {float(array[arm, i])!r} at index {i}")
    norms = np.linalg.norm(array, axis=1)
    if norms.max() > 1 + 1e-9:
        arm = int(np.argmax(norms))
        raise ValueError(
            f"features must have norm at most 1; arm {arm} has {norms[arm]:.6g}: divide all features by the largest norm"
        )
    rank = rank_of(array)
    if rank < array.shape[1]:
        raise ValueError(
            f"features of the {len(array)} arms span {rank} of {array.shape[1]} dimensions; leave out features that depend "
            "linearly on others, or add arms"
        )
    return array


def _elimination(
    features: ArrayLike, reward_range: Interval, noise: PhaseNoise, delta: float, beta_scale: float, origin: float | None
) -> PhasedElimination:
    rows = tuple(tuple(row) for row in checked_features(features).tolist())
    middle = (reward_range.low + reward_range.high) / 2
    return PhasedElimination(rows, reward_range, noise, delta, beta_scale, middle if origin is None else origin)


def gope(
    features: ArrayLike, reward_range: Interval, delta: float, beta_scale: float = 1.0, origin: float | None = None
) -> PhasedElimination:
    """The non-private twin; for the arguments see `adar_gope`."""
    return _elimination(features, reward_range, WhitenedNoise(Exact()), delta, beta_scale, origin)


PARTS = {
    "printed": {"noise": "printed", "lengths": "printed", "width": "printed"},
    "tight": {"noise": "tight", "lengths": "exact", "width": "exact"},
}
"""Calibration of AdaR-GOPE -> its parts, see `adar_gope`; both kinds of noise spend the claimed budget exactly."""


def adar_gope(
    features: ArrayLike,
    alpha: float,
    epsilon: float,
    reward_range: Interval,
    calibration: str | Mapping[str, str],
    delta: float,
    beta_scale: float = 1.0,
    origin: float | None = None,
) -> PhasedElimination:
    """AdaR-GOPE with total privacy (alpha, epsilon)-RDP.

    Args: as in `PhasedElimination`, and
      features: (n_arms, d), norms at most 1, spanning.
      alpha: Renyi order, above 1.
      epsilon: Renyi divergence bound, above 0.
      calibration: `printed` or `tight`, or a mixture of their `PARTS`: noise on each arm's sum (`ArmNoise`, printed) or in d
        dimensions (`WhitenedNoise`, tight), lengths of phases and widths printed or exact (`GaussianNoise`).
      delta: probability that some confidence interval fails; 1 / horizon for a bound on the expected regret.
      origin: mean reward of the zero vector; None is the middle of the range.
    """
    multiplier = math.sqrt(order("alpha", alpha) / (2 * positive("epsilon", epsilon))) * UP
    mechanism = Gaussian(reward_range.width, multiplier, Relation.REPLACE_REWARD)
    if isinstance(calibration, str):
        if calibration not in PARTS:
            raise ValueError(f"calibration must be 'printed' or 'tight', got {calibration!r}")
        calibration = PARTS[calibration]
    form: type[GaussianNoise] = ArmNoise if calibration["noise"] == "printed" else WhitenedNoise
    noise = form(mechanism, calibration["lengths"], calibration["width"])
    return _elimination(features, reward_range, noise, delta, beta_scale, origin)


def adar_gope_pure(
    features: ArrayLike,
    epsilon: float,
    reward_range: Interval,
    delta: float,
    beta_scale: float = 1.0,
    origin: float | None = None,
) -> PhasedElimination:
    """AdaR-GOPE with total privacy epsilon-DP, by Laplace noise; for the arguments see `adar_gope`."""
    mechanism = Laplace(reward_range.width, UP / positive("epsilon", epsilon), Relation.REPLACE_REWARD)
    return _elimination(features, reward_range, LaplaceNoise(mechanism), delta, beta_scale, origin)


def theorem_8_bound(
    horizon: ArrayLike, n_arms: int, dimension: int, alpha: float, epsilon: float, delta: float, reward_range: Interval
) -> FloatArray:
    r"""Theorem 8 with its constants: exceeded with probability at most delta by the printed AdaR-GOPE, at `beta_scale` 1.

    The theorem leaves C_1 and C_2 open. In units of half the width of the range, with L = log(4 K l (l + 1) / delta) for
    the last phase l begun, and g = 1.001 d for designs of a gap of 0.1 percent,

        R_T <= min(2 T,  4 d (d + 1) + 48 sqrt(g T L) + 16 g l sqrt(2 (alpha / epsilon) d (d + 1) L)).

    Proof: phase k lasts at most d(d+1)/2 + 8 g L 4^k + 2 g 2^k P rounds, P = sqrt(2 (alpha / epsilon) d (d + 1) L), and an
    arm in it is worse by at most 8 2^-k. Phases up to m cost 4 d (d+1) + 128 g L 2^m + 16 g m P, later ones 4 2^-m a round.
    Over whole m >= 0, 128 g L 2^m + 4 T 2^-m is at most 48 sqrt(g T L), or T < 16 g L and 2 T is less. A phase k lasts at
    least 8 4^k log(8 K / delta) rounds, so l <= 1 + log_4(T / (8 log(8 K / delta))).

    Args:
      horizon: numbers of rounds, any shape, which the regret has too, in units of reward.
      n_arms: K.
      dimension: d.
      alpha: Renyi order.
      epsilon: Renyi divergence bound.
      delta: failure probability.
      reward_range: declared range of a reward.

    Source: Azize and Basu, Theorem 8 and Appendix C.3.
    """
    order("alpha", alpha)
    positive("epsilon", epsilon)
    probability("delta", delta)
    rounds = np.asarray(horizon, dtype=float)
    first = 8 * math.log(8 * n_arms / delta)
    phase = 1 + np.floor(np.maximum(np.log(np.maximum(rounds, 1) / first) / math.log(4), 0))
    log_term = np.log(4 * n_arms * phase * (phase + 1) / delta)
    largest, pairs = dimension * (1 + _DESIGN_GAP), dimension * (dimension + 1)
    noise = 16 * largest * phase * np.sqrt(2 * alpha / epsilon * pairs * log_term)
    bound = 4 * pairs + 48 * np.sqrt(largest * rounds * log_term) + noise
    return np.asarray(reward_range.width / 2 * np.minimum(2 * rounds, bound))
