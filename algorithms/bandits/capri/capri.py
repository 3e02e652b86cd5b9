r"""Kernel bandits with stochastic contexts, by elimination on private projected regression: CAPRI, and its twin.

A user brings a context c of a public finite set and is given an action x; the points w = (c, x) lie in the domain of a
kernel, and the mean reward is m + f(w), m the middle of the range, f a function of the kernel's space. What is learned is y
= reward - m, |y| <= B = (high - low) / 2.

Source: Pavlovic, Salgia and Zhao, "Differential Privacy in Kernelized Contextual Bandits via Random Projections".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from bandana.algorithms.bandits.capri import projection
from bandana.algorithms.bandits.capri.gathering import Gathering
from bandana.algorithms.bandits.capri.projection import Projection, epoch_lengths
from bandana.algorithms.bandits.capri.widths import Epoch, Width
from bandana.algorithms.protocol import DecidesEachRecord, FloatArray, IntArray, Record
from bandana.algorithms.public_coins import uniform
from bandana.algorithms.rkhs.pool import Pool
from bandana.privacy_core import Interval, Ledger
from bandana.privacy_core.checks import at_least, non_negative, one_of, positive

_MOST_REMEMBERED = 2**27
"""Bytes of plans that are kept for other replicates."""
_AT_ONCE = 2**16
"""Coins of users that are computed at once."""
_USERS, _CONTEXTS, _ACTIONS = range(3)
"""Words of coins: what they are for."""
REFUSE, NEAREST = "refuse", "nearest"
PRINTED, EXACT = "printed", "exact"


class Sensitive(NamedTuple):
    """The exact statistics, which only the ledger sees."""

    sum: Any
    """Sum of y v(w) over the epoch: the state of what gathers it."""


class Released(NamedTuple):
    """All that decisions are made from; a function of noisy sums and of public coins."""

    active: np.ndarray
    """(n_reps, n_contexts, n_actions) bool, X_r(c)."""
    estimate: FloatArray
    """(n_reps, n_points) of f in the last epoch that was released; NaN before the first."""
    order: IntArray
    """(n_reps, n_contexts, n_actions) the active actions of each context, then the others."""
    n_active: IntArray
    """(n_reps, n_contexts)"""
    which: IntArray
    """(n_reps,) the plan that the replicate is in."""
    plans: tuple[Plan, ...]
    """Plans of the epoch under way, one for each set of active actions and public coins that some replicate has."""
    codes: FloatArray
    """(n_plans, n_points, n_outputs) of the plans."""
    clock: IntArray
    """(n_reps,) rounds played; the same in all replicates."""
    epoch: IntArray
    """(n_reps,) the epoch under way, from 0; the same in all replicates."""


class Plan(NamedTuple):
    """An epoch, as a function of its number, of the active actions and of public coins."""

    order: IntArray
    """(n_contexts, n_actions)"""
    n_active: IntArray
    """(n_contexts,)"""
    codes: FloatArray
    """(n_points, n_outputs) v(w) / unit: what a reward of 1 adds; of norm at most 1 at all points that can be played."""
    readers: FloatArray
    """(n_points, n_outputs) the same: estimates are unit^2 times their products with the noisy sum."""
    unit: float
    """s_max, or the printed bound on it."""
    width: FloatArray
    """(n_points,) half-widths of the confidence intervals."""


@dataclass(frozen=True, eq=False)
class ProjectedElimination(DecidesEachRecord):
    r"""CAPRI: epochs of ceil(sqrt T), then twice as many rounds each; users are given uniformly random active actions.

    At the end of an epoch of T_r rounds the sum of y_t v(w_t) over its users is released with Gaussian noise, f is estimated
    on all points by the products with v(w), and of each context those actions go that are worse than another one beyond all
    doubt. v is that of `projection.project` for S and R, T_r points each, drawn from the generator of contexts and uniformly
    from the active actions: they imitate the epoch's users, and are made without them.

    Unit of privacy: one user's record, context and reward. What is protected: joint model, the actions of all *other* users
    (a user's own action may depend on the own context); local model, the user's message. Claim: (epsilon, delta), for
    neighbors that replace one record (Theorems 4.1 and 6.7).
    Sensitivity: a record adds y v(w), |y| <= B, so replacing it moves the sum by at most 2 B s_max, s_max the maximum of
    |v(w)| over *all* contexts of the pool and their active actions; w = w' and y = B, y' = -B attain it. It is that of the
    operator as computed, rank decisions and rounding included. What is released is the sum divided by `unit` >= s_max, which
    is public, so that every release of every epoch and replicate has sensitivity 2 B and one noise multiplier 1/mu.
    A record is in one epoch; when epochs end is public, and S, R, v and the active actions are functions of public coins and
    of earlier releases. So one release touches a record, and by the one-touch lemma (`docs/privacy.md`) the whole run is
    mu-GDP. Under local privacy one message is all that a user sends, with the same mu.
    The pool's law says what S, R and the exact widths imitate, and nothing else. Where contexts come by another law, privacy
    is untouched: the claim is for any records, the sensitivity a maximum over all contexts. Only widths may be too short.
    Public: the pool and its law, the kernel, T, the range, all coins. An epoch that the horizon cuts off, or ends with,
    releases no sum; messages are sent in every round.
    Cost: a round O(n_features), an epoch and set of active actions O(|W|^2 n_features). State: O(|W|) sums and actions a
    replicate, and O(|W| n_features) a plan, which replicates with the same active actions share; nothing grows with T but
    the coins.

    Coins: S, R and one number u_t in [0, 1) a round are public coins (`bandana.algorithms.public_coins`) of the words seed,
    replicate's key, purpose, epoch and place in it; a user is given the action of number floor(u_t k) among the k active
    ones. None is a function of data, not even of released sums. Given the released sums and the context, u_t is uniform and
    independent of all else, which is all that the proof asks of it; that an adversary knows all coins costs nothing, because
    the claim holds for every S and R, and the sensitivity is a maximum over all points. Replicates with different keys are
    independent runs; those with one key, as in audits, share S, R and every u_t, and their law is that given the coins.

    Departures from the paper:
      Features. The estimate is computed in the span of the features of the pool's points, where it takes O(|W|) numbers and
        not T_r: the paper's vector, as long as S, is an isometric image of ours, so noise and estimates have the same law.
        S may repeat points, as it must on a finite set as soon as T_r > |W|; eqs. (4) and (6) invert matrices that are then
        singular.
      Noise. Lemma 6.6 and Lemma 7.1 define sigma_max without the square root of eq. (6); the sensitivity has it, and so do
        we. The maximum over the support of the generator, eq. (6), is no bound for a neighbor that brings another context:
        we take it over all contexts of the pool, `printed` included. The local appendix prints M^-1 k_S(c_t, y_t) for M^-1/2
        k_S(c_t, x_t).
      Composition. Claim 6.8 adds up log T epochs; no user is in two of them. For logarithms of base 10 that sum would be
        wrong, as there are log2(T / T_1 + 1) epochs; by the one-touch lemma it is not needed.
      Noise as printed keeps sigma_0 of eq. (5), with natural logarithms: for sigma_max = s_max it spends
        mu = epsilon / (2 log T sqrt(log(1.25 log T / delta))). Tight noise has sigma_0 = 2 B s_max / mu, mu the exact one of
        (epsilon, delta). The sensitivity as printed puts sigma_max for s_max, which makes either noise a little larger.
      Widths as printed have the beta of Lemma 6.6 at failure / (|W| T log T), with B the larger of the bounds on y and on f;
        beta_1 comes in two readings: eq. (7) covers 2.3 to 2.6 deviations of the printed noise at B = 1, where 4.3 to 4.9
        are needed, and shrinks with B, Lemma 6.6 has 47 to 53. With either nothing is eliminated at T = 1e5, whatever the
        noise. Exact widths are those of `ExactWidth`, for the noise that is there.
      Lemma 6.5 needs every epoch to be longer than a threshold that Theorem 6.7 asks of T alone: sqrt(T) may be shorter.
        Exact widths do not need it.
      All center rewards on the middle of the range (public, costs nothing), which halves B for rewards in [0, 1].

    Attributes: as in `CAPRI`, and
      pool: the contexts, their points, and the law that generates them.
      features: (n_points, n_features) phi of the points, norm at most 1; point (c, x) has the number c n_actions + x.
      reward_range: declared range of a reward; every reward is clipped to it.
      gathering: `Together` or `EachAlone`, with the noise.
      width: `PrintedWidth` or `ExactWidth`.
      sensitivity: what `unit` is: `exact`, s_max, or `printed`, the paper's bound sigma_max >= s_max.
      beta_scale: factor on all widths; below 1 intervals may fail more often. `width` has a factor for its parts.
      strangers: a context outside the pool is `refuse`d, or taken for the `nearest` one of the pool. As an error is seen by
        others, a promise to users who may hold anything needs the latter; where it is a mistake in the data, the former.
      seed: of all public coins, a whole number of at least 0.
      coins: (n_reps,) whole numbers of at least 0, the key of each replicate's public coins: a benchmark gives each
        replicate its own. None: key 0 for all, as in audits.
    """

    pool: Pool
    features: FloatArray
    reward_range: Interval
    horizon: int
    gathering: Gathering
    width: Width
    sensitivity: str
    ridge: float
    beta_scale: float = 1.0
    strangers: str = NEAREST
    seed: int = 0
    coins: IntArray | None = None

    def __post_init__(self) -> None:
        at_least("horizon", self.horizon, 2)
        positive("ridge", self.ridge)
        non_negative("beta_scale", self.beta_scale)
        one_of("strangers", self.strangers, (REFUSE, NEAREST))
        one_of("sensitivity", self.sensitivity, (PRINTED, EXACT))
        n_points = self.n_contexts * self.n_actions
        if self.features.shape[:1] != (n_points,):
            raise ValueError(f"features must have one row for each of {n_points} points, got shape {self.features.shape}")
        at_least("seed", self.seed, 0)
        if self._keys.ndim != 1 or self._keys.dtype.kind not in "iu" or self._keys.min(initial=0) < 0:
            raise ValueError(f"coins must be whole numbers of at least 0, one a replicate, got {self.coins!r}")

    @property
    def n_actions(self) -> int:
        """Number of actions of each context."""
        return int(self.pool.points.shape[1])

    @property
    def n_contexts(self) -> int:
        """Number of contexts of the pool."""
        return int(self.pool.points.shape[0])

    @property
    def context_dimension(self) -> int:
        """Dimension of the points."""
        return int(self.pool.points.shape[2])

    @property
    def n_outputs(self) -> int:
        """Number of values in a released sum."""
        return int(self.features.shape[1])

    @cached_property
    def _keys(self) -> IntArray:
        """(n_reps,) keys of the replicates' public coins; (1,) if they share one."""
        return np.zeros(1, dtype=np.int64) if self.coins is None else np.asarray(self.coins)

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """Rounds of each epoch."""
        return epoch_lengths(self.horizon)

    @cached_property
    def _ends(self) -> tuple[int, ...]:
        return tuple(np.cumsum(self.lengths).tolist())

    @cached_property
    def _middle(self) -> float:
        return (self.reward_range.low + self.reward_range.high) / 2

    def init(self, n_reps: int) -> tuple[Sensitive, Released]:
        """The first epoch, all actions active.

        Raises:
          ValueError: `coins` are those of another number of replicates.
        """
        if self.coins is not None and len(self._keys) != n_reps:
            raise ValueError(f"coins must hold a key for each of {n_reps} replicates, got {len(self._keys)}")
        zeros = np.zeros(n_reps, dtype=np.int64)
        released = Released(
            active=np.ones((n_reps, self.n_contexts, self.n_actions), dtype=bool),
            estimate=np.full((n_reps, len(self.features)), np.nan),
            order=np.zeros((n_reps, self.n_contexts, self.n_actions), dtype=np.int64),
            n_active=np.zeros((n_reps, self.n_contexts), dtype=np.int64),
            which=zeros,
            plans=(),
            codes=np.zeros(0),
            clock=zeros.copy(),
            epoch=zeros.copy(),
        )
        return Sensitive(self.gathering.init(n_reps, self.n_outputs)), self._opened(released, 0)

    def act(self, released: Released, context: FloatArray | None, step: int) -> IntArray:
        """(n_reps,) the round's coin among the active actions of the context.

        Raises:
          ValueError: there are no contexts, one is outside the pool (where strangers are refused), or the horizon is over.
        """
        clock = int(released.clock[0])
        if clock >= self.horizon:
            raise ValueError(f"the algorithm was built for {self.horizon} rounds, this is round {clock + 1}")
        actions = np.empty(len(released.clock), dtype=np.int64)
        coin = np.broadcast_to(self.coin(clock), actions.shape)
        projection.assign(released.order, released.n_active, self._place(context), coin, actions)
        return actions

    def coin(self, clock: int) -> FloatArray:
        """(n_reps,), or (1,) if replicates share it: the number in [0, 1) that chooses the action in a round, from 0."""
        at_once = max(1, _AT_ONCE // len(self._keys))
        part, place = divmod(clock, at_once)
        if part not in self._known_coins:
            self._known_coins.clear()
            rounds = np.arange(part * at_once, (part + 1) * at_once)
            self._known_coins[part] = uniform(self.seed, self._keys, _USERS, rounds[:, None])
        return np.asarray(self._known_coins[part][place])

    @cached_property
    def _known_coins(self) -> dict[int, FloatArray]:
        return {}

    def absorb(self, sensitive: Sensitive, released: Released, record: Record, ledger: Ledger) -> tuple[Sensitive, Released]:
        """Adds the record to the epoch; where that ends, eliminates and plans the next one."""
        value = np.empty((len(record.user), self.n_outputs))
        projection.encode(
            released.codes, released.which, self._place(record.contexts), record.actions, self.n_actions, record.rewards,
            record.n_records, self._middle, value,
        )  # fmt: skip
        np.add(released.clock, record.n_records, out=released.clock)
        clock, epoch = int(released.clock[0]), int(released.epoch[0])
        is_last = clock == self._ends[epoch] and clock < self.horizon
        state, noisy = self.gathering.take(sensitive.sum, value, record.n_records, is_last, ledger)
        return Sensitive(state), self._next(released, noisy) if is_last else released

    def _place(self, context: FloatArray | None) -> IntArray:
        """(n_reps,) which context of the pool."""
        return self.pool.placed(context, self.strangers == REFUSE)

    def _next(self, released: Released, noisy: FloatArray) -> Released:
        """Takes the noisy sums (n_reps, n_features) in, and opens the next epoch."""
        active, which = released.active, released.which
        for number, plan in enumerate(released.plans):
            projection.decode(plan.readers, plan.unit**2, np.flatnonzero(which == number), noisy, released.estimate)
        projection.eliminate(released.estimate, np.stack([plan.width for plan in released.plans]), which, active)
        np.add(released.epoch, 1, out=released.epoch)
        return self._opened(released, int(released.epoch[0]))

    def _opened(self, released: Released, epoch: int) -> Released:
        """The same with the epoch's plans, one for each key of coins and set of active actions."""
        which = released.which
        keys = np.broadcast_to(self._keys, which.shape).tolist()
        plans: list[Plan] = []
        numbers: dict[tuple[int, bytes], int] = {}
        for rep, packed in enumerate(np.packbits(released.active.reshape(len(which), -1), axis=1)):
            name = keys[rep], packed.tobytes()
            if name not in numbers:
                numbers[name] = len(plans)
                plans.append(self.plan(epoch, released.active[rep], keys[rep]))
            which[rep] = numbers[name]
        return released._replace(
            order=np.stack([plan.order for plan in plans])[which],
            n_active=np.stack([plan.n_active for plan in plans])[which],
            plans=tuple(plans),
            codes=plans[0].codes[None] if len(plans) == 1 else np.stack([plan.codes for plan in plans]),
        )

    # --- plans: public, a function of the epoch and of active actions; remembered because replicates share them -----------

    @cached_property
    def _known_plans(self) -> dict[tuple[int, int, bytes], Plan]:
        return {}

    def plan(self, epoch: int, active: np.ndarray, coins: int = 0) -> Plan:
        """The plan of an epoch.

        Args:
          epoch: from 0.
          active: (n_contexts, n_actions) bool, the active actions, at least one in each context.
          coins: key of the public coins.
        """
        key = (epoch, coins, np.packbits(active).tobytes())
        known = self._known_plans.get(key)
        if known is None:
            if (len(self._known_plans) + 1) * self.features.nbytes > _MOST_REMEMBERED:
                self._known_plans.clear()
            known = self._known_plans[key] = self._planned(epoch, active, coins)
        return known

    def _planned(self, epoch: int, active: np.ndarray, coins: int) -> Plan:
        basis, copies = (self.imitation(epoch, active, coins, part) for part in (0, 1))
        return self._made(epoch, active, basis, np.bincount(copies, minlength=len(self.features)))

    def imitation(self, epoch: int, active: np.ndarray, coins: int, part: int) -> IntArray:
        """(T_r,) the points of S (part 0) or R (part 1): contexts by the pool's law, active actions uniformly."""
        order, n_active = np.argsort(~active, axis=1, kind="stable"), active.sum(axis=1)
        rounds = np.arange(self.lengths[epoch])
        which, action = (uniform(self.seed, coins, word, epoch, part, rounds) for word in (_CONTEXTS, _ACTIONS))
        context = self.pool.at(which)
        n = n_active[context]
        chosen = np.minimum((action * n).astype(np.int64), n - 1)  # a coin near 1 must not round up
        return np.asarray(context * self.n_actions + order[context, chosen])

    def _made(self, epoch: int, active: np.ndarray, basis: IntArray, counts: IntArray) -> Plan:
        """The plan of S with the points `basis` and R with each point `counts` times."""
        order, n_active = np.argsort(~active, axis=1, kind="stable"), active.sum(axis=1)
        length, is_active = self.lengths[epoch], active.ravel()
        projected = projection.project(self.features, basis, counts, self.ridge)
        unit = self._unit(projected, is_active)
        rounds = np.where(active, (self.pool.law / n_active)[:, None], 0.0).ravel() * length
        deviation = unit * self.gathering.noise_deviation(length)
        width = self.width.half_widths(Epoch(length, self.features, projected, rounds, is_active, deviation))
        return Plan(order, n_active, *self._coded(projected, basis, unit), unit, self.beta_scale * width)

    def _unit(self, projected: Projection, is_active: np.ndarray) -> float:
        """Scale that the vectors are divided by, at least |v(w)| where `is_active`."""
        bound = projected.norm if self.sensitivity == EXACT else projected.spread
        return float(bound[is_active].max())

    def _coded(self, projected: Projection, basis: IntArray, unit: float) -> tuple[FloatArray, FloatArray]:
        """(n_points, n_outputs) codes and readers."""
        codes = np.ascontiguousarray(projected.vectors / unit)
        return codes, codes
