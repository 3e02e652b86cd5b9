r"""UCB on finitely many arms whose reward sums come from a binary tree: DP-UCB on Laplace nodes, UCB1 on exact ones.

Source: Mishra and Thakurta (2015), (Nearly) optimal differentially private stochastic multi-arm bandits, Algorithm 1;
Tossou and Dimitrakakis (2016), Algorithms for differentially private multi-armed bandits. The tree is that of Dwork, Naor,
Pitassi and Rothblum (2010) and of Chan, Shi and Song (2011).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bandana.algorithms.bandits.finite_arm import indices_numba
from bandana.algorithms.protocol import DecidesEachRecord, FloatArray, IntArray, Record
from bandana.privacy_core import Exact, Interval, Laplace, Ledger, Relation, Tree, TreeSum
from bandana.privacy_core.checks import positive
from bandana.privacy_core.sums import RunningState
from bandana.privacy_core.tree import Nodes


class Sensitive(NamedTuple):
    """Sensitive state: exact statistics, which decisions never read."""

    sums: RunningState[Nodes]
    """The tree over rounds; each of its nodes holds one sum an arm."""


class Released(NamedTuple):
    """All that decisions are made from; noisy sums and public counts."""

    total: FloatArray
    """(n_reps, n_arms) noisy sum of an arm's rewards so far."""
    pulls: IntArray
    """(n_reps, n_arms)"""
    clock: IntArray
    """(n_reps,) rounds played."""


@dataclass(frozen=True)
class TreeUCB(DecidesEachRecord):
    r"""UCB1 from noisy running sums: in every round the arm with the largest

        total_a / n_a + width sqrt(beta log t / (2 n_a)) + b q(m, beta log t) / n_a,

    total_a the noisy sum of the rewards of its n_a pulls, the sum of m nodes of a binary tree with Laplace noise of scale b
    each, m the number of binary digits 1 of the rounds played.

    Width. q(m, x) is where Chernoff's bound on the sum of m standard Laplace variables is e^-x: with s = sqrt(1 + (q/m)^2),
    m (s - 1 - log((s + 1) / 2)) = x. It is 2 sqrt(m x) for small x / m and x + O(m log x) for large, sharp in the exponent
    in both; it is a bound on the noise alone, for every t, however arms were chosen. Together with Hoeffding's bound over
    n_a <= t the true mean is above the index in round t with probability at most t^(1 - beta) + t^-beta.

    Unit of privacy: one reward (one round). Claim: epsilon-DP of all actions, central model. Sensitivity: one node holds
    the vector of all arms' sums over its rounds; a reward clipped to [low, high] lies in one coordinate of it, which moves
    by at most high - low when it is replaced: in L1 the vector moves by the width. A record lies in at most
    L = floor(log2 T) + 1 nodes, so that L Laplace releases of multiplier L / epsilon touch the worst record: exactly
    epsilon, as pure privacy composes.
    Public: arms, horizon, beta, the reward range. Cost: O(n_arms) a round, with n_arms Laplace draws; an index changes in
    every round, so nothing can be jumped over: horizons up to about 1e5 for many replicates.

    Departures from the papers: their trees are separate, one for each arm, each over the rounds with a zero where
    its arm was not pulled, or over its arm's own pulls. The former is this vector tree. The latter has the same b, for T
    bounds either count, and digits of n_a in the place of those of t; its nodes hold rounds that do not follow one
    another, of which the ledger knows only the hull, where other arms' records would pay too. Their width is a union bound
    over all nodes, Gamma, with log^2 T log(1 / gamma) / epsilon; ours is the law of the m nodes that are summed. L is
    floor(log2 T) + 1 in place of 1 + ceil(log2 T).

    Attributes:
      n_actions: number of arms.
      reward_range: declared range of a reward; every reward is clipped to it.
      sums: the tree, of at least as many steps as there are rounds; plain, not Honaker's.
      beta: exploration; 4 is UCB1's.
    """

    n_actions: int
    reward_range: Interval
    sums: TreeSum
    beta: float

    def __post_init__(self) -> None:
        if self.n_actions < 2:
            raise ValueError(f"n_actions must be at least 2, got {self.n_actions!r}")
        positive("beta", self.beta)
        if getattr(self.sums, "honaker", False):
            raise ValueError("sums must be a plain tree: the width counts its nodes, got one with honaker=True")

    def init(self, n_reps: int) -> tuple[Sensitive, Released]:
        """The states before the first pull."""
        table = (n_reps, self.n_actions)
        released = Released(np.zeros(table), np.zeros(table, dtype=np.int64), np.zeros(n_reps, dtype=np.int64))
        return Sensitive(self.sums.init(n_reps, (self.n_actions,))), released

    def act(self, released: Released, context: FloatArray | None, step: int) -> IntArray:
        """(n_reps,) the arm with the largest index (ties: the lowest arm)."""
        chosen = np.empty(len(released.clock), dtype=np.int64)
        indices_numba.tree_optimistic_arms(
            released.total, released.pulls, released.clock, self.beta, self.sums.mechanism.scale,
            self.reward_range.width, chosen,
        )  # fmt: skip
        return chosen

    def absorb(self, sensitive: Sensitive, released: Released, record: Record, ledger: Ledger) -> tuple[Sensitive, Released]:
        """Adds the reward in its arm's coordinate, and releases the node that the round completes."""
        rows, arm = np.arange(len(record.user)), record.actions[:, 0]
        value = np.zeros(released.total.shape)
        value[rows, arm] = record.rewards[:, 0]
        state = self.sums.add(sensitive.sums, value, record.n_records)
        playing = np.flatnonzero(record.n_records)
        is_whole = len(playing) == ledger.n_reps
        state, noisy, _ = self.sums.close(state, ledger, None if is_whole else playing)
        released.total[slice(None) if is_whole else playing] = noisy
        released.pulls[rows, arm] += record.n_records
        np.add(released.clock, record.n_records, out=released.clock)
        return Sensitive(state), released


def tree_ucb(n_arms: int, beta: float, reward_range: Interval, horizon: int) -> TreeUCB:
    """The non-private twin: UCB1 at beta = 4."""
    return TreeUCB(n_arms, reward_range, TreeSum(Exact(), horizon), beta)


def dp_ucb(n_arms: int, epsilon: float, beta: float, reward_range: Interval, horizon: int) -> TreeUCB:
    """DP-UCB with total privacy epsilon-DP.

    Args:
      n_arms: at least 2.
      epsilon: above 0.
      beta: exploration.
      reward_range: declared range of a reward.
      horizon: most rounds, at least 1; the noise of a node is that of a tree of so many.
    """
    positive("epsilon", epsilon)
    # Not below the theorem's noise: rounded up by one part in 1e12.
    multiplier = Tree(horizon).n_nodes / epsilon * (1 + 1e-12)
    mechanism = Laplace(reward_range.width, multiplier, Relation.REPLACE_REWARD)
    return TreeUCB(n_arms, reward_range, TreeSum(mechanism, horizon), beta)
