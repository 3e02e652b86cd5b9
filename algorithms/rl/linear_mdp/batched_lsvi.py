r"""Batched LSVI-UCB: optimistic least-squares value iteration in linear MDPs, without privacy or jointly private.

A user lives through an episode of H steps; p_h(s'|s, a) = <phi(s, a), mu_h(s')> and mean rewards <phi(s, a), theta_h> are
linear in known features. After a batch of users the policy is planned backwards: at each step one regression on all users
so far, whose targets are the reward plus the *new* value of the state that followed. Every update therefore reads every user
again, and a user of the first batch pays for all of them: fewer batches, less noise.

Sources: Luyo, Garcelon, Lazaric and Pirotta, "Differentially Private Exploration in Reinforcement Learning with Linear
Representation", Algorithm 2, Theorem 8, Appendix E. Jin, Yang, Wang and Jordan (2020), LSVI-UCB; Wang, Zhou and Gu (2021),
its batched form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from bandana.algorithms.mdp.models import LinearModel, PlaysOnModel
from bandana.algorithms.protocol import DecidesEachRecord, FloatArray, IntArray, Record
from bandana.algorithms.regression import ridge_numba
from bandana.algorithms.regression.private_ridge import Regularizer, raise_eigenvalues, regularizer
from bandana.algorithms.rl.linear_mdp import values_numba as kernels
from bandana.algorithms.rl.linear_mdp.batches import Schedule
from bandana.privacy_core import Interval, Ledger, Mechanism, PrivateSum, Span
from bandana.privacy_core.checks import at_least, non_negative, positive, probability

UNIT = Interval(0.0, 1.0)


class Sensitive(NamedTuple):
    """Exact statistics of all users so far."""

    counts: IntArray
    """(n_reps, H, S, A, S) how often each step led from where to where."""
    rewards: FloatArray
    """(n_reps, H, S, A) sums of rewards."""
    triangles: FloatArray
    """(n_reps, H, d (d + 1) / 2) sums of phi phi^T since the last look, upper triangles."""
    matrices: Any
    """The state of the algorithm's sum of these."""


class Released(NamedTuple):
    """All that decisions are made from: a function of noisy sums and of the number of episodes."""

    policy: IntArray
    """(n_reps, H, S) actions, as of the last update."""
    values: FloatArray
    """(n_reps, H + 1, S) optimistic values; the last row is 0."""
    weights: FloatArray
    """(n_reps, H, d) w, the estimates of the last update."""
    inverse: FloatArray
    """(n_reps, H, d, d) inverses of the noisy matrices then."""
    log_det: FloatArray
    """(n_reps, H) log-determinants of the noisy matrices over what was added: the largest at an update, at least 0."""
    n_looks: IntArray
    """(n_reps,)"""
    n_updates: IntArray
    """(n_reps,)"""
    clock: IntArray
    """(n_reps,) episodes played."""


@dataclass(frozen=True)
class BatchedLSVI(PlaysOnModel, DecidesEachRecord):
    r"""LSVI-UCB on noisy statistics, in batches.

    At a look after k episodes, with N_h the noise of the matrices, |N_h| <= q with high probability, and at an update with
    vectors' noise n_h, |n_h| <= g_h, for h = H, ..., 1 (V_{H+1} = 0, sums over all k episodes, c_h the centers),

        Lambda_h = sum phi phi^T + N_h + (lambda + (m + 1) q) I,
        u_h = sum phi (r + V_{h+1}(s') - c_h) + n_h,      w_h = Lambda_h^-1 u_h,
        Q_h(s, a) = c_h + <w_h, phi(s, a)> + beta_h |phi(s, a)|, the norm that of Lambda_h^-1,
        V_h(s) = max_a Q_h(s, a), moved into [0, cap_h],

    and users are given argmax_a Q_h(s, a) until the next update. With `width` None, beta_h is a width that is proved here.
    Let a = lambda + m q and b = lambda + (m + 2) q, which bound the regularizer M = N_h + (lambda + (m + 1) q) I, and let
    w*_h be the weights of r + P V_{h+1} - c_h: linear, as V_{h+1} is a function. Then w_h - w*_h = Lambda_h^-1 (-M w*_h +
    e + n_h), e = sum phi (y - E y), y the targets, and in the norm of Lambda_h, which is at least M and at least sum phi
    phi^T + a I,

        |M w*_h| <= sqrt(b) |w*_h|,  |w*_h| <= sqrt(d) (1 + cap_{h+1}/2 + |c_h - cap_{h+1}/2|),      |n_h| <= g_h / sqrt(a),
        |e| <= Y_h/2 sqrt(2 log(3 H L / failure) + 2 S log ceil(cap_{h+1} sqrt k) + d log(1 + k/(d a))) + 1,

    Y_h = 1 + cap_{h+1} the length of the interval in which targets lie, L the number of looks. The bound on e is the
    self-normalized one (Abbasi-Yadkori, Pal, Szepesvari 2011, Theorem 1) for each function of a net of [0, cap]^S with
    resolution 1/(2 sqrt k): V_{h+1} depends on the same data, and its nearest function in the net is wrong by at most 1/(2
    sqrt k) in each of k targets and in its mean, by 1 in the norm. (The papers cover the class of all V_{h+1} instead, which
    costs d^2 in place of S.) So with probability 1 - failure every Q_h is at least the optimal one, at all looks.

    Ties: where the moved indices of several actions are alike, any of them attains the maximum; the largest index before it
    is moved decides, then `preference`. Before the first update all indices are alike, and users take all sequences of
    actions in turn, by the number of the episode, each step's actions in the order of `preference`.

    Unit of privacy: one user's episode (states, actions, rewards of all H steps). What is protected: the actions of all
    other users, and the final policy, by the billboard lemma; the ledger holds the price of the whole transcript.
    Sensitivity: norms of features are at most 1 (the model checks it) and rewards are moved into [0, 1], so that replacing
    a user moves a step's matrix by at most sqrt 2 in the Frobenius norm and u_h by 2 max |y - c_h| in L2; `tight` noise is
    made for exactly that. Values are functions of earlier outputs, so prices add up adaptively. Public: the features, K,
    H, all parameters. Cost: an episode O(H d^2); an update O(H (d^3 + S A (S + d^2))).

    Departures: see `bandana.algorithms.rl.linear_mdp.forms`.

    Attributes:
      model: features of all states and actions, and H.
      horizon: K, most episodes.
      schedule: when it looks and updates.
      matrices: answers the running sum of phi phi^T in the shape (H, d (d + 1) / 2), at each look.
      vectors: (H,) what releases u_h at an update.
      diagonal_weight: of diagonal entries in the triangles, so that noise of equal size on all of them is the law that is
        meant: 1/sqrt 2 for the GOE.
      matrix_norms: q at each look, the first entry 0 for none.
      vector_norms: (H,) g_h.
      caps: (H,) the largest value from each step on.
      centers: (H,) c_h.
      ridge: lambda.
      margin: m.
      failure: of all bounds together.
      width: beta of all steps; None: see above.
      beta_scale: factor on the width.
      preference: (n_reps, n_actions), for each replicate a permutation of the actions: among ties the action that comes
        first in it is taken; None: the lowest. Public.
    """

    model: LinearModel
    horizon: int
    schedule: Schedule
    matrices: PrivateSum
    vectors: tuple[Mechanism, ...]
    diagonal_weight: float
    matrix_norms: tuple[float, ...]
    vector_norms: tuple[float, ...]
    caps: tuple[float, ...]
    centers: tuple[float, ...]
    ridge: float
    margin: float
    failure: float
    width: float | None = None
    beta_scale: float = 1.0
    preference: IntArray | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        at_least("horizon", self.horizon, 1)
        positive("ridge", self.ridge)
        positive("margin", self.margin)
        probability("failure", self.failure)
        non_negative("beta_scale", self.beta_scale)
        for name in ("vectors", "vector_norms", "caps", "centers"):
            if len(getattr(self, name)) != self.model.horizon:
                raise ValueError(f"{name} must have an entry a step, {self.model.horizon}, got {len(getattr(self, name))}")
        if len(self.matrix_norms) != len(self.schedule.looks) + 1:
            raise ValueError(
                f"matrix_norms must have an entry a look and one before, {len(self.schedule.looks) + 1}, got "
                f"{len(self.matrix_norms)}"
            )
        if self.preference is not None:
            rows = np.sort(np.atleast_2d(self.preference), axis=1)
            if np.ndim(self.preference) != 2 or not np.array_equal(rows, np.tile(np.arange(self.n_actions), (len(rows), 1))):
                raise ValueError(f"each row of preference must be a permutation of the {self.n_actions} actions")

    @property
    def reward_range(self) -> Interval:
        """Range of a reward: [0, 1]."""
        return UNIT

    @cached_property
    def _looks(self) -> frozenset[int]:
        return frozenset(self.schedule.looks)

    def init(self, n_reps: int) -> tuple[Sensitive, Released]:
        """The states before the first episode: every value is the largest possible one."""
        if self.preference is not None and len(self.preference) != n_reps:
            raise ValueError(f"preference must have a row a replicate, {n_reps}, got {len(self.preference)}")
        length, n, d = self.episode_length, self.n_states, self.model.dimension
        triangles = (length, d * (d + 1) // 2)
        sensitive = Sensitive(
            np.zeros((n_reps, length, n, self.n_actions, n), dtype=np.int64),
            np.zeros((n_reps, length, n, self.n_actions)),
            np.zeros((n_reps, *triangles)),
            self.matrices.init(n_reps, triangles),
        )
        values = np.zeros((n_reps, length + 1, n))
        values[:, :-1] = np.array(self.caps)[:, None]
        zeros = np.zeros(n_reps, dtype=np.int64)
        released = Released(
            np.zeros((n_reps, length, n), dtype=np.int64), values, np.zeros((n_reps, length, d)),
            np.tile(np.eye(d) / self.ridge, (n_reps, length, 1, 1)), np.zeros((n_reps, length)),
            zeros, zeros.copy(), zeros.copy(),
        )  # fmt: skip
        return sensitive, released

    def act(self, released: Released, context: IntArray, step: int) -> IntArray:
        """(n_reps,) actions of the policy in the users' states; before the first update all sequences in turn."""
        actions = released.policy[np.arange(len(context)), step, context]
        if not released.n_updates.all():
            in_turn = released.clock // min(self.n_actions**step, 2**62) % self.n_actions
            if self.preference is not None:
                in_turn = self.preference[np.arange(len(context)), in_turn]
            actions = np.where(released.n_updates > 0, actions, in_turn)
        return np.asarray(actions)

    def absorb(self, sensitive: Sensitive, released: Released, record: Record, ledger: Ledger) -> tuple[Sensitive, Released]:
        """Adds the episode; at a look releases the matrices, and where an update is due plans anew."""
        assert record.states is not None
        kernels.tally(record.states, record.actions, record.rewards, sensitive.counts, sensitive.rewards)
        kernels.add_outer_products(
            record.states, record.actions, self.model.features, self.diagonal_weight, sensitive.triangles
        )
        np.add(released.clock, record.n_records, out=released.clock)
        if int(released.clock[0]) not in self._looks:
            return sensitive, released
        last = np.array((0, *self.schedule.looks))[released.n_looks]  # episodes up to the last look
        state = self.matrices.add(sensitive.matrices, sensitive.triangles, released.clock - last)
        state, noisy, _ = self.matrices.close(state, ledger)
        sensitive.triangles.fill(0.0)
        np.add(released.n_looks, 1, out=released.n_looks)
        sensitive = sensitive._replace(matrices=state)
        look = int(released.n_looks[0])
        inverse, log_det = self._invert(noisy, look)
        due = np.flatnonzero(self.is_due(released, log_det))
        if len(due):
            released.inverse[due] = inverse[due]
            released.log_det[due] = np.maximum(released.log_det[due], log_det[due])
            released.n_updates[due] += 1
            self._plan(sensitive, released, ledger, due, look)
        return sensitive, released

    def is_due(self, released: Released, log_det: FloatArray) -> np.ndarray:
        """(n_reps,) whether to update: a function of what was released, and of the number of looks."""
        growth = self.schedule.log_growth
        is_left = released.n_updates < self.schedule.most_updates
        if growth is None:
            return is_left
        has_grown = (log_det > released.log_det + growth).any(axis=1)
        return np.asarray(is_left & (has_grown | (released.n_updates == 0)))

    def most_costly(self) -> BatchedLSVI:
        """The same algorithm at its most costly: every look is an update, while one is paid for."""
        if self.schedule.log_growth is None:
            return self
        return replace(self, schedule=replace(self.schedule, log_growth=-math.inf))

    def regularizer(self, look: int) -> Regularizer:
        """Matrix added to the matrices at the look-th look, with bounds on the eigenvalues that result."""
        return regularizer(self.ridge, self.matrix_norms[look], self.margin)

    def widths(self, look: int) -> FloatArray:
        """(H,) beta_h at the look-th look, in units of reward; see the class."""
        if self.width is not None:
            return np.full(self.episode_length, self.beta_scale * self.width)
        d, k = self.model.dimension, self.schedule.looks[look - 1]
        _, least, largest = self.regularizer(look)
        after, centers = np.array((*self.caps[1:], 0.0)), np.array(self.centers)
        weights = math.sqrt(d) * (1 + after / 2 + np.abs(centers - after / 2))
        union = 2 * math.log(3 * self.episode_length * len(self.schedule.looks) / self.failure)
        net = 2 * self.n_states * np.log(np.maximum(np.ceil(after * math.sqrt(k)), 1.0))
        chance = (1 + after) / 2 * np.sqrt(union + net + d * math.log1p(k / (d * least))) + (after > 0)
        noise = np.array(self.vector_norms) / math.sqrt(least)
        return np.asarray(self.beta_scale * (math.sqrt(largest) * weights + noise + chance))

    def _invert(self, noisy: FloatArray, look: int) -> tuple[FloatArray, FloatArray]:
        """(n_reps, H, d, d) inverses of the shifted noisy matrices, and log-determinants (n_reps, H) over the shift.

        Where one is not positive definite after all, its eigenvalues are raised to a: post-processing.
        """
        n_reps, length, d = len(noisy), self.episode_length, self.model.dimension
        added, least, _ = self.regularizer(look)
        gram, inverse = np.empty((2, n_reps * length, d, d))
        kernels.unfold(noisy.reshape(n_reps * length, -1), self.diagonal_weight, added, gram)
        log_det, is_positive = np.empty(len(gram)), np.empty(len(gram), dtype=np.bool_)
        ridge_numba.factor(gram, inverse, log_det, is_positive)
        bad = np.flatnonzero(~is_positive)
        if len(bad):
            raise_eigenvalues(gram[bad], bad, least, inverse, log_det)
        return inverse.reshape(n_reps, length, d, d), log_det.reshape(n_reps, length) - d * math.log(added)

    def _plan(self, sensitive: Sensitive, released: Released, ledger: Ledger, due: IntArray, look: int) -> None:
        """Backward induction in the given replicates; each step's vector is released before the step before is planned."""
        reps = None if len(due) == ledger.n_reps else due
        records = Span(np.zeros(len(due), dtype=np.int64), released.clock[due].copy())
        widths, vector = self.widths(look), np.empty((len(due), self.model.dimension))
        preference = self.preference
        if preference is None:
            preference = np.tile(np.arange(self.n_actions), (ledger.n_reps, 1))
        for step in range(self.episode_length - 1, -1, -1):
            kernels.responses(
                sensitive.counts, sensitive.rewards, step, due, self.targets(sensitive, released, due, step),
                self.centers[step], self.model.features, vector,
            )  # fmt: skip
            noisy = ledger.release(self.vectors[step], vector.copy(), records=records, reps=reps)
            kernels.improve(
                released.inverse[due, step], noisy, step, due, widths[step], self.centers[step], self.caps[step],
                self.model.features, preference, released.weights, released.policy, released.values,
            )  # fmt: skip

    def targets(self, sensitive: Sensitive, released: Released, due: IntArray, step: int) -> FloatArray:
        """(n_rows, S) the values that follow the step: released ones, which is what makes releases compose."""
        return np.asarray(released.values[due, step + 1])
