r"""UCB-VI: optimistic value iteration on counts in finite Markov decision processes, without privacy, and joint or local.

A user lives through an episode of H steps in S states with A actions; where actions lead and what they pay is unknown, and
nothing is assumed of it but that rewards lie in [0, 1]. Counts of transitions and sums of rewards are kept as running noisy
sums; after every batch of users the policy is planned anew from them. Counts do not depend on the policy's values, so
that an update costs no privacy: each record pays once for the sums, however often the policy changes.

Sources: Azar, Osband and Munos (2017), Minimax regret bounds for reinforcement learning (UCBVI); Vietri, Balle,
Krishnamurthy and Wu (2020), Private reinforcement learning with PAC and regret guarantees (PUCB); Qiao and Wang (2023),
Near-optimal differentially private reinforcement learning (DP-UCBVI, bonuses of Bernstein type), and Differentially private
reinforcement learning with self-play, whose case B = 1 it is; Garcelon, Perchet, Pike-Burke and Pirotta (2021), Local
differential privacy for regret minimization in reinforcement learning (LDP-OBI).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from bandana.algorithms.protocol import DecidesEachRecord, FloatArray, IntArray, Record
from bandana.algorithms.rl.tabular import planning_numba as kernels
from bandana.algorithms.rl.tabular.statistics import Errors, Layout
from bandana.privacy_core import Interval, Ledger, LocalSum, PrivateSum
from bandana.privacy_core.checks import at_least, non_negative, one_of, probability

UNIT = Interval(0.0, 1.0)
BONUSES = ("hoeffding", "bernstein")
"""Basis of a bonus: the range of values, or their estimated variance."""


class Sensitive(NamedTuple):
    """Exact statistics."""

    fresh: FloatArray
    """(n_reps, H, S, A, width) what episodes added since the sums were closed."""
    sums: Any
    """The state of the algorithm's sum of these."""


class Released(NamedTuple):
    """All that decisions are made from: a function of noisy sums and of the number of episodes."""

    policy: IntArray
    """(n_reps, H, S) actions, as of the last look."""
    values: FloatArray
    """(n_reps, H + 1, S) optimistic values, V_up; the last row is 0."""
    lower: FloatArray
    """(n_reps, H + 1, S) pessimistic values, V_low; all 0 with the bonus `hoeffding`, which has none."""
    n_closed: IntArray
    """(n_reps,) episodes that the noisy sums hold."""
    n_looks: IntArray
    """(n_reps,)"""
    clock: IntArray
    """(n_reps,) episodes played."""


@dataclass(frozen=True)
class UCBVI(DecidesEachRecord):
    r"""Optimistic value iteration on noisy counts.

    A row of the statistics (`bandana.algorithms.rl.tabular.statistics`) has for each h, s, a noisy counts m^(s') of next
    states, a noisy sum rho^ of rewards less 1/2, and an estimate n^ of the number of visits n, whose errors are at most E_1
    (in L1), E_r and E_n. With C = cap_{h+1} the largest value after the step, c = C/2 and u = max(n^ + E_n, 1), for h = H,
    ..., 1 (V_{H+1} = 0; where the layout subtracts z = 0 from rewards, z replaces 1/2 in Q, and 1 in b),

        Q_h(s, a) = 1/2 + c + (rho^ + sum_{s'} m^(s') (V_{h+1}(s') - c) + b) / u,     V_h(s) = max_a Q_h(s, a) in [0, cap_h],
        b = (1/2 + c) max(2 E_n, [n^ + E_n < 1]) + E_r + c E_1 + e.

    *Optimism.* While all errors are in their bounds and V_{h+1} is at least the optimal V*, Q_h is at least the optimal q*:
    u lies in [n, n + 2 E_n], or in [n, n + 1] where it is 1 by force. As counts m are not negative, sum m^ (V - c) >= sum m
    (V* - c) - c E_1, and what is left is a sum of n independent terms (r - 1/2) + (V*(s') - c) of a *fixed* function, with
    mean n (q* - 1/2 - c) and deviation at most e below it; |q* - 1/2 - c| <= 1/2 + c. With l = log(9 H S A K / failure), for
    all n <= K and all rows at once with probability 1 - failure/3, e = (1 + C) sqrt(u l / 2).

    *DP-UCBVI*, `bernstein`: values are bounded on both sides, and bonuses are made of variances. With V_up as above and
    V_low its mirror image (0 after the last step), N = sum m^, N' = max(N, 1) and R = max V_up - min V_low,

        Q_up = 1/2 + (rho^ + E_r + sqrt(u l / 2) + max(E_n, [n^ + E_n < 1] / 2)) / u + c + (A_up - N c + w) / N',
        A_up = sum_{s'} m^(s') (V_up(s') where m^(s') > 0, else V_low(s')),     w = e + R E_g + c max(1 - N, 0),
        e = sqrt(2 l W) + 3 C l,     W = max(0, sum_{s'} m^ F + E_1 max F),     F = max((V_up - x)^2, (V_low - x)^2),

    and Q_low with minus signs and A_low, where V_up and V_low change places; V_low = max_a Q_low, moved into [0, cap_h], and
    x is the middle of c + (A - N c) / N' for both A, moved into [0, C]. E_g bounds the noise of sum m g for one *fixed*
    function g of next states, |g| <= 1: it grows with sqrt(S), not with S. If V_low <= V* <= V_up after the step, so it is
    before:

      noise    A_up >= sum m^ V* by its choice of ends, so A_up >= N x* + sum m (V* - x*) - R E_g: x* = P V* and V* - x* are
               fixed, and |V* - x*| <= R. No error of the number of visits enters.
      chance   |sum m (V* - x*)| <= e. Bennett's inequality and the empirical variance (Maurer and Pontil 2009, Theorem 4)
               bound it for n > 1 by sqrt(2 l n Var n / (n - 1)) + 7 C l n / (3 (n - 1)), Var that of V* under m / n. Where
               n <= 3 l it is at most n C <= 3 C l. Else n >= 9, as l >= log 15: the root is sqrt(2 l n Var) and at most
               C sqrt(l n / 2) / (2 (n - 1)) <= 0.09 C l more, as Var <= C^2 / 4, and the rest at most 2.63 C l.
      variance n Var <= sum m (V* - x)^2 <= sum m F <= W, as V* lies between V_low and V_up, whatever x is.
      few      For N < 1, N (x* - c) + c (1 - N) >= x* - c. Rewards: as above, with |r* - 1/2| <= 1/2.

    Both sides of rewards and of sums, and one variance, are five tails: l = log(15 H S A K / failure). This is the bonus of
    Qiao and Wang (2023; with self-play, Lemma B.7) with constants of our own. They need counts that linear programs make a
    distribution, have S E for the noise in place of E_g, and P (V_up - V_low) / H for what F adds to a variance.

    Ties: where the moved indices of several actions are alike, the largest index before it is moved decides, then
    `preference`. Before the first look users take all sequences of actions in turn, by the number of the episode.

    Unit of privacy: one user's episode (states, actions, rewards of all H steps). Protected: the actions of all other users
    and the final policy, by the billboard lemma; under local privacy the message of each user, so everything that the server
    learns of them. When sums are closed and looked at is public. Sensitivity: `Layout`. Cost: an episode O(H), a look
    O(H S^2 A) and as many random numbers; under local privacy so many random numbers an episode.

    Departures: see `bandana.algorithms.rl.tabular.forms`.

    Attributes:
      n_states: S.
      n_actions: A.
      episode_length: H.
      horizon: K, most episodes.
      looks: after how many episodes the policy is planned anew, increasing.
      sums: answers the running sum of the statistics: at each look, and of messages (`LocalSum`) after each episode.
      layout: of a row of the statistics.
      errors: bounds on the noise at each look.
      caps: (H + 1,) the largest value from each step on; the last one is 0.
      failure: of all bounds together.
      bonus: one of `BONUSES`.
      beta_scale: factor on all widths, E_n in u among them.
      published: E and the logarithm of PUCB's bonus; None: what is proved above.
      preference: (n_reps, n_actions), for each replicate a permutation of the actions: among ties the action that comes
        first in it is taken; None: the lowest. Public.
    """

    n_states: int
    n_actions: int
    episode_length: int
    horizon: int
    looks: tuple[int, ...]
    sums: PrivateSum
    layout: Layout
    errors: tuple[Errors, ...]
    caps: tuple[float, ...]
    failure: float
    bonus: str = "hoeffding"
    beta_scale: float = 1.0
    published: tuple[float, float] | None = None
    preference: IntArray | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for name in ("n_states", "n_actions", "episode_length", "horizon"):
            at_least(name, getattr(self, name), 1)
        probability("failure", self.failure)
        non_negative("beta_scale", self.beta_scale)
        one_of("bonus", self.bonus, BONUSES)
        if any(late <= early for early, late in zip((0, *self.looks), self.looks, strict=False)):
            raise ValueError(f"looks must be increasing numbers of episodes from 1 on, got {self.looks}")
        if len(self.errors) != len(self.looks):
            raise ValueError(f"errors must have an entry a look, {len(self.looks)}, got {len(self.errors)}")
        if len(self.caps) != self.episode_length + 1:
            raise ValueError(
                f"caps must have {self.episode_length + 1} entries, one a step and one after, got {len(self.caps)}"
            )
        if self.preference is not None:
            rows = np.sort(np.atleast_2d(self.preference), axis=1)
            if np.ndim(self.preference) != 2 or not np.array_equal(rows, np.tile(np.arange(self.n_actions), (len(rows), 1))):
                raise ValueError(f"each row of preference must be a permutation of the {self.n_actions} actions")

    @property
    def reward_range(self) -> Interval:
        """Range of a reward: [0, 1]."""
        return UNIT

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(H, S, A, width) of the statistics."""
        return self.episode_length, self.n_states, self.n_actions, self.layout.width

    @property
    def is_local(self) -> bool:
        """True if users noise their own messages, so that each episode closes the sums."""
        return isinstance(self.sums, LocalSum)

    @property
    def log(self) -> float:
        """The logarithm l of the widths."""
        rows = self.episode_length * self.n_states * self.n_actions
        tails = 15 if self.bonus == "bernstein" else 9
        return math.log(tails * rows * self.horizon / self.failure)

    @cached_property
    def _looks(self) -> frozenset[int]:
        return frozenset(self.looks)

    def init(self, n_reps: int) -> tuple[Sensitive, Released]:
        """The states before the first episode: every value is the largest possible one."""
        if self.preference is not None and len(self.preference) != n_reps:
            raise ValueError(f"preference must have a row a replicate, {n_reps}, got {len(self.preference)}")
        sensitive = Sensitive(np.zeros((n_reps, *self.shape)), self.sums.init(n_reps, self.shape))
        values = np.tile(np.array(self.caps)[:, None], (n_reps, 1, self.n_states))
        policy = np.zeros((n_reps, self.episode_length, self.n_states), dtype=np.int64)
        counters = (np.zeros(n_reps, dtype=np.int64) for _ in range(3))
        return sensitive, Released(policy, values, np.zeros_like(values), *counters)

    def act(self, released: Released, context: IntArray, step: int) -> IntArray:
        """(n_reps,) actions of the policy in the users' states; before the first look all sequences in turn."""
        rows = np.arange(len(context))
        if int(released.n_looks[0]):
            return np.asarray(released.policy[rows, step, context])
        in_turn = released.clock // min(self.n_actions**step, 2**62) % self.n_actions
        return np.asarray(in_turn if self.preference is None else self.preference[rows, in_turn])

    def absorb(self, sensitive: Sensitive, released: Released, record: Record, ledger: Ledger) -> tuple[Sensitive, Released]:
        """Adds the episode; releases its message, or at a look what came since the last one; plans anew at a look."""
        assert record.states is not None
        self.count(record, sensitive.fresh)
        np.add(released.clock, record.n_records, out=released.clock)
        is_look = int(released.clock[0]) in self._looks
        if not (is_look or self.is_local):
            return sensitive, released
        state = self.sums.add(sensitive.sums, sensitive.fresh, released.clock - released.n_closed)
        state, noisy, _ = self.sums.close(state, ledger)
        sensitive.fresh.fill(0.0)
        np.copyto(released.n_closed, released.clock)
        if is_look:
            np.add(released.n_looks, 1, out=released.n_looks)
            self.plan(noisy, released)
        return sensitive._replace(sums=state), released

    def count(self, record: Record, out: FloatArray) -> None:
        """Adds an episode's contribution to `out`, (n_reps, H, S, A, width)."""
        layout = self.layout
        kernels.tally(record.states, record.actions, record.rewards, layout.reward_center, layout.count_weight, out)

    def plan(self, noisy: FloatArray, released: Released) -> None:
        """Plans from (n_reps, H, S, A, width) noisy statistics of the present look: policy and values are filled in."""
        preference = self.preference
        if preference is None:
            preference = np.tile(np.arange(self.n_actions), (len(noisy), 1))
        filled = preference, released.policy, released.values
        if self.published is not None:
            kernels.plan_published(noisy, *self.published, self.beta_scale, *filled)
            return
        errors, layout = self.errors[int(released.n_looks[0]) - 1], self.layout
        layouts = layout.reward_center, layout.count_weight, layout.count_share
        given = noisy, *layouts, np.array(errors), np.array(self.caps)
        if self.bonus == "bernstein":
            kernels.plan_bernstein(*given, self.log, self.beta_scale, *filled, released.lower)
        else:
            kernels.plan(*given, self.log, self.beta_scale, *filled)
