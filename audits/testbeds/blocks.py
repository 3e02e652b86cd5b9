"""Small honest algorithms that audit the continual sums and matrix mechanisms before an algorithm of the catalog uses them.

A bed does what an algorithm does, and no more: a record's answer becomes a contribution, contributions enter a sum, the sum
is released when a phase ends, and the next action is decided from what was released. So the replays, the deterministic
audit and the noise audit run on it unchanged, over any `RewardTable`.

Unit of privacy: one record, which is one round; a neighbor replaces what that user would answer to any action. Claim: mu-GDP
of everything that is released, in the central model (`local` beds: of each message). It is the claim of the sum that the bed
is given, since a record contributes to one step of it: sensitivity and cost are derived there.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.protocol import Algorithm, FloatArray, IntArray, Record
from bandana.audits.neighbors.pairs import Pair, canary_pairs
from bandana.privacy_core import (
    EQUAL,
    DoublingSum,
    Factorized,
    FactorizedSum,
    Gaussian,
    GaussianDP,
    Interval,
    JointGaussian,
    Ledger,
    LocalSum,
    Mechanism,
    PhaseSum,
    PhaseTotal,
    PrivateSum,
    Releases,
    Span,
    Structure,
    SymmetricGaussian,
    Tree,
    TreeSum,
    calibrate,
)
from bandana.privacy_core.sums import Counted, RunningSum

N_USERS = 24
"""Length of every trial; the deterministic audit tries tables up to this long."""
UNIT = Interval(0.0, 1.0)


class Sensitive(NamedTuple):
    """Sensitive state: exact statistics, which decisions never read."""

    sum: object
    """The state of the bed's sum."""


class Released(NamedTuple):
    """All that decisions are made from."""

    statistic: FloatArray
    """(n_reps, ...) the noisy running sum."""
    arm: IntArray
    """(n_reps,) the action under way."""
    left: IntArray
    """(n_reps,) rounds for which it will be held; 0 asks for a new decision."""
    clock: IntArray
    """(n_reps,) rounds played."""


@dataclass(frozen=True)
class Bed(ABC):
    """Base of all test problems: they hold an action, add contributions, release where a phase ends.

    Cost: one addition a round, one `close` a phase.

    Attributes:
      n_actions: number of actions.
      reward_range: every reward is clipped to it.
      sums: what the contributions enter; it answers the running sum.
    """

    n_actions: int
    reward_range: Interval
    sums: PrivateSum

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one contribution."""
        return ()

    @abstractmethod
    def decide(self, released: Released) -> IntArray:
        """(n_reps,) the next action, from released values only."""

    @abstractmethod
    def contribution(self, record: Record) -> FloatArray:
        """(n_reps, ...) what the record adds to the sum; zero where there is no record."""

    def length(self, actions: IntArray) -> IntArray:
        """(n_reps,) for how many rounds an action is held: one."""
        return np.ones(len(actions), dtype=np.int64)

    def ends(self, left: IntArray, clock: IntArray) -> np.ndarray:
        """(n_reps,) whether a phase ends now, from public and released values: when the action's rounds are over."""
        return np.asarray(left == 0)

    def init(self, n_reps: int) -> tuple[Sensitive, Released]:
        """The states before the first round."""
        zeros = np.zeros(n_reps, dtype=np.int64)
        released = Released(np.zeros((n_reps, *self.shape)), zeros, zeros.copy(), zeros.copy())
        return Sensitive(self.sums.init(n_reps, self.shape)), released

    def act(self, released: Released, context: FloatArray | None, step: int) -> IntArray:
        """(n_reps,) the action that is held, or a new one."""
        return np.where(released.left > 0, released.arm, self.decide(released))

    def hold(self, released: Released, actions: IntArray) -> IntArray:
        """(n_reps,) rounds until the next decision."""
        return np.where(released.left > 0, released.left, self.length(actions))

    def absorb(self, sensitive: Sensitive, released: Released, record: Record, ledger: Ledger) -> tuple[Sensitive, Released]:
        """Adds the contribution; where a phase ends, releases the running sum."""
        actions, is_playing = record.actions[:, 0], record.n_records > 0
        left = np.where(is_playing, self.hold(released, actions) - record.n_records, released.left)
        clock = released.clock + record.n_records
        state = self.sums.add(sensitive.sum, self.contribution(record), record.n_records)
        ended = np.flatnonzero(is_playing & self.ends(left, clock))
        statistic = released.statistic
        if len(ended):
            state, noisy, _ = self.sums.close(state, ledger, None if len(ended) == ledger.n_reps else ended)
            statistic = statistic.copy()
            statistic[ended] = noisy
        return Sensitive(state), Released(statistic, np.where(is_playing, actions, released.arm), left, clock)


@dataclass(frozen=True)
class RunningSumBed(Bed):
    """The running sum of rewards, and a second action that is played where its noisy mean lies above a public threshold.

    Unit of privacy, claim: see the module. Sensitivity: a reward clipped to [low, high] moves its step's sum by at most the
    width when it is replaced, and no other step's.

    Attributes:
      lengths: for how many rounds each action is held; a phase is what was held. With different lengths, phases end at other
        rounds in each replicate, as a function of what was released.
      threshold: in units of reward.
    """

    lengths: tuple[int, ...] = (1, 1)
    threshold: float = 0.5

    def decide(self, released: Released) -> IntArray:
        """(n_reps,) 1 above the threshold, else 0."""
        return (released.statistic > self.threshold * released.clock).astype(np.int64)

    def contribution(self, record: Record) -> FloatArray:
        """(n_reps,) the reward."""
        return record.rewards[:, 0]

    def length(self, actions: IntArray) -> IntArray:
        """(n_reps,), public for each action."""
        return np.asarray(np.array(self.lengths)[actions])


@dataclass(frozen=True)
class EliminationBed(Bed):
    """Successive elimination: actions in turn; one that falls behind the best by a gap is played no more.

    All actions' sums leave as one vector, at the end of each phase of public length. Sensitivity: a reward lies in one
    coordinate of one phase's vector, which moves by at most the range's width, in L1 and in L2 alike.

    Attributes:
      pulls: rounds for which an action is held; a phase has one hold for each action.
      gap: in units of summed reward.
    """

    pulls: int = 4
    gap: float = 0.25

    @property
    def shape(self) -> tuple[int, ...]:
        """One sum an action."""
        return (self.n_actions,)

    def decide(self, released: Released) -> IntArray:
        """(n_reps,) the action whose turn it is, or the best one if that is out."""
        turn = released.clock // self.pulls % self.n_actions
        best = released.statistic.max(axis=1)
        is_out = np.take_along_axis(released.statistic, turn[:, None], axis=1)[:, 0] < best - self.gap
        return np.where(is_out, released.statistic.argmax(axis=1), turn)

    def contribution(self, record: Record) -> FloatArray:
        """(n_reps, n_actions), the reward in the action's place."""
        value = np.zeros((len(record.user), self.n_actions))
        value[np.arange(len(value)), record.actions[:, 0]] = record.rewards[:, 0]
        return value

    def length(self, actions: IntArray) -> IntArray:
        """(n_reps,) the same for all."""
        return np.full(len(actions), self.pulls)

    def ends(self, left: IntArray, clock: IntArray) -> np.ndarray:
        """(n_reps,), after one hold for each action."""
        return np.asarray(clock % (self.pulls * self.n_actions) == 0)


@dataclass(frozen=True)
class GramBed(Bed):
    r"""The sums of x x^T and y x, and the action that a ridge estimate, or the width of its ellipsoid, prefers.

    With u in [0, 1] the reward's place in its range, and e_0, ..., e_(d-1) the axes, a record that plays action a has

        x = R (cos(turn u) e_a + sin(turn u) e_(a+1)),     y = Y + (last_value - Y) u,

    so that one table reaches any matrix mechanism's least favorable pair: the angle and values that attain its sensitivity.

    Unit of privacy, claim: see the module. Sensitivity: |x| = R and |y| <= Y whatever the reward is, as it is clipped and
    u is in [0, 1]; what one (x, y) can change is derived in `JointGaussian` and `SymmetricGaussian.of_outer_products`.
    The Gram matrix is regularized by a public shift, never by one that depends on the noise.

    Attributes:
      dimension: d, at least the number of actions.
      norm_bound: R.
      value_bound: Y.
      turn: angle between x at the lowest and at the highest reward.
      last_value: y at the highest reward.
      has_values: whether the sum of y x is released too; otherwise the widest direction is played.
      shift: added to the diagonal.
    """

    dimension: int = 2
    norm_bound: float = 1.0
    value_bound: float = 1.0
    turn: float = 0.0
    last_value: float = -1.0
    has_values: bool = True
    shift: float = 4.0

    @property
    def shape(self) -> tuple[int, ...]:
        """(d, d), with one column more for the vector."""
        return (self.dimension, self.dimension + self.has_values)

    def features(self, record: Record) -> tuple[FloatArray, FloatArray]:
        """(n_reps, d) x and (n_reps,) y."""
        place = (record.rewards[:, 0] - self.reward_range.low) / self.reward_range.width
        action, rows = record.actions[:, 0], np.arange(len(place))
        x = np.zeros((len(place), self.dimension))
        x[rows, action] = self.norm_bound * np.cos(self.turn * place)
        x[rows, (action + 1) % self.dimension] = self.norm_bound * np.sin(self.turn * place)
        return x, self.value_bound + (self.last_value - self.value_bound) * place

    def contribution(self, record: Record) -> FloatArray:
        """(n_reps, d, d + 1), or without the last column."""
        x, y = self.features(record)
        value = JointGaussian.statistic(x, y)
        return value if self.has_values else value[:, :, :-1]

    def decide(self, released: Released) -> IntArray:
        """(n_reps,) the action whose axis has the largest estimate, or the largest width."""
        return self.prefer(released.statistic)

    def prefer(self, statistic: FloatArray) -> IntArray:
        """(n_reps,) see `decide`."""
        gram = statistic[:, :, : self.dimension] + self.shift * np.eye(self.dimension)
        if self.has_values:
            score = np.linalg.solve(gram, statistic[:, :, self.dimension :])[:, :, 0]
        else:
            score = np.diagonal(np.linalg.inv(gram), axis1=1, axis2=2)
        return np.asarray(score[:, : self.n_actions].argmax(axis=1))


@dataclass(frozen=True)
class RepeatedSum(RunningSum[Counted]):
    """The running sum released anew at every step: the composition theorem at its plainest, and the baseline of all others.

    The first record lies in every release, so n_steps releases touch it, and each has sqrt(n_steps) times the noise of one.

    Attributes:
      mechanism: what adds the noise of one release; its budget is that of n_steps releases (`Releases(n_steps)`).
      n_steps: most steps.
    """

    mechanism: Mechanism
    n_steps: int

    def remember_nothing(self, n_reps: int, shape: tuple[int, ...]) -> Counted:
        """The memory before the first step: an empty exact sum."""
        return Counted(np.zeros(n_reps, dtype=np.int64), np.zeros((n_reps, *shape)))

    def push(self, memory: Counted, value: FloatArray, records: Span, ledger: Ledger, reps: IntArray | None) -> FloatArray:
        """Takes in one step and releases the whole running sum anew, with fresh noise.

        Raises:
          ValueError: there are more steps than the noise was calibrated for.
        """
        rows = slice(None) if reps is None else reps
        step = memory.n_steps[rows] + 1
        if len(step) and step.max() > self.n_steps:
            raise ValueError(f"the sum was built for {self.n_steps} steps, this is step {int(step.max())}")
        total = memory.total[rows] + value
        span = Span(np.zeros_like(records.start), records.stop)
        noisy = ledger.release(self.mechanism, total, records=span, reps=reps)
        memory.total[rows] = total
        memory.n_steps[rows] = step
        return noisy

    def noise_variance(self, step: int) -> float:
        """Variance of one release's noise, at every step."""
        return 1.0


@dataclass(frozen=True)
class Trial:
    """A bed, ready to be audited.

    Attributes:
      name: short name.
      algorithm: the bed.
      table: the data set.
      claim: what the bed promises.
      probes: records at which a changed reward costs most.
    """

    name: str
    algorithm: Algorithm
    table: RewardTable
    claim: GaussianDP
    probes: tuple[int, ...] = (0,)

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Canaries at the probes."""
        return canary_pairs(self.table, self.probes)


def reward(multiplier: float) -> Gaussian:
    """Noise for a sum of rewards in [0, 1]."""
    return Gaussian(UNIT.width, multiplier)


def trials(mu: float = 1.0, n_users: int = N_USERS) -> dict[str, Trial]:
    """One honest bed for each building block, each calibrated to be mu-GDP and no less private.

    Every reward of the table is 1/2, in the middle of [0, 1], so that the canary alone decides a comparison with it.

    Args:
      mu: what all claim.
      n_users: length of the tables, and of the sums that must know it.

    Returns:
      name -> trial. Of `doubling`, whose segments have 4, 8, 16, ... steps, the fifth record starts the second.
    """
    claim = GaussianDP(mu)

    def noise(structure: Structure) -> float:
        return calibrate(claim, structure)

    def segment(n_steps: int) -> TreeSum:
        return TreeSum(reward(noise(Tree(n_steps))), n_steps)

    tree, once = Tree(n_users), noise(Releases(1))
    plain = TreeSum(reward(noise(tree)), n_users)
    equal = JointGaussian(1.0, 1.0, noise(Factorized(n_users)), diagonal_ratio=EQUAL)
    outer = SymmetricGaussian.of_outer_products(1.0, noise(tree))
    wide = JointGaussian(1.0, 5.0, noise(tree))
    beds: dict[str, Bed] = {
        "tree": RunningSumBed(2, UNIT, plain),
        "tree-uneven": RunningSumBed(2, UNIT, plain, lengths=(1, 2)),
        "honaker": RunningSumBed(2, UNIT, TreeSum(reward(noise(tree)), n_users, honaker=True)),
        "factorized": RunningSumBed(2, UNIT, FactorizedSum(reward(noise(Factorized(n_users))), n_users)),
        "buffered": RunningSumBed(2, UNIT, FactorizedSum(reward(noise(Factorized(n_users))), n_users, n_buffers=3)),
        "doubling": RunningSumBed(2, UNIT, DoublingSum(segment, first=4, growth=2)),
        "repeated": RunningSumBed(2, UNIT, RepeatedSum(reward(noise(Releases(n_users))), n_users)),
        "local": RunningSumBed(2, UNIT, LocalSum(reward(once))),
        "phases": RunningSumBed(2, UNIT, PhaseTotal(PhaseSum(reward(once)))),
        "elimination": EliminationBed(2, UNIT, PhaseTotal(PhaseSum(reward(once)))),
        "gram-joint": GramBed(2, UNIT, TreeSum(JointGaussian(1.0, 1.0, noise(tree)), n_users)),
        "gram-wide": GramBed(2, UNIT, TreeSum(wide, n_users), value_bound=5.0, last_value=-5.0),
        "gram-equal": GramBed(2, UNIT, FactorizedSum(equal, n_users, n_buffers=3), dimension=3, turn=math.pi / 3),
        "gram-only": GramBed(2, UNIT, TreeSum(outer, n_users), turn=math.pi / 2, has_values=False),
        "gram-repeated": GramBed(2, UNIT, RepeatedSum(JointGaussian(1.0, 1.0, noise(Releases(n_users))), n_users)),
        "gram-local": GramBed(2, UNIT, LocalSum(JointGaussian(1.0, 1.0, once))),
    }
    table = RewardTable(np.full((n_users, 2), 0.5), UNIT)
    probes = {"doubling": (4, 0)}
    return {name: Trial(name, bed, table, claim, probes.get(name, (0,))) for name, bed in beds.items()}
