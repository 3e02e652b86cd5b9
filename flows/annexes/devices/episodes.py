"""UCB-VI on a device: paths of episodes, and optimistic values by backward induction on noisy counts."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from bandana.algorithms.rl.tabular.ucb_vi import UCBVI
from bandana.audits.neighbors.pairs import Pair
from bandana.flows.annexes.devices.regressions import lowest_of_the_largest

Tensor = Any


class OptimisticPlanning:
    """Formulas are those of `UCBVI` and of its kernels; see `Twin`.

    Attributes:
      ends: of messages after each user, else at each look.
      shape: (H, S, A, width).
    """

    def __init__(self, algorithm: UCBVI, pair: Pair, device: str) -> None:
        import torch

        self._torch, self._algorithm, self._pair = torch, algorithm, pair
        self._on, self._where = {"dtype": torch.float64, "device": device}, {"dtype": torch.int64, "device": device}
        n_users = pair.data.n_users
        self._looks = {look: number for number, look in enumerate(algorithm.looks)}
        self.ends = range(1, n_users + 1) if algorithm.is_local else [look for look in algorithm.looks if look <= n_users]
        self.shape = algorithm.shape

    @cached_property
    def _trees(self) -> tuple[tuple[Tensor, Tensor, Tensor], ...]:
        """(n_users,) first states, (n_users, H, S, A) next states, and rewards less their center: of both sides."""
        pair, span = self._pair, self._algorithm.reward_range
        sides: Any = (pair.data.clipped(span), pair.neighbor.clipped(span))
        return tuple(
            (
                self._torch.tensor(side.first_states, **self._where),
                self._torch.tensor(side.next_states, **self._where),
                self._torch.tensor(side.rewards, **self._on) - self._algorithm.layout.reward_center,
            )
            for side in sides
        )

    def begin(self, n_reps: int) -> None:
        """Values before the first look."""
        self._policy = None
        self._rows = self._torch.arange(n_reps, device=self._on["device"])

    def play(self, user: int, on_neighbor: bool) -> tuple[Tensor, Tensor]:
        """The path of the policy, or of all sequences in turn before there is one, and its counts."""
        torch, layout = self._torch, self._algorithm.layout
        length, n_states, n_actions, _ = self.shape
        first, after, rewards = self._trees[on_neighbor]
        n_reps = len(self._rows)
        added = torch.zeros((n_reps, *self.shape), **self._on)
        state, actions = first[user].expand(n_reps), []
        for h in range(length):
            if self._policy is None:
                chosen = torch.full((n_reps,), user // min(n_actions**h, 2**62) % n_actions, **self._where)
            else:
                chosen = self._policy[self._rows, h, state]
            following = after[user, h, state, chosen]
            row = (self._rows, h, state, chosen)
            added[(*row, following)] += 1.0
            added[(*row, n_states)] += rewards[user, h, state, chosen]
            if layout.count_weight:
                added[(*row, n_states + 1)] += layout.count_weight
            state = following
            actions.append(chosen)
        return torch.stack(actions, dim=1), added.reshape(n_reps, -1)

    def learn(self, answer: Tensor, step: int) -> None:
        """Plans anew where the closing is a look."""
        n_users = self.ends[step - 1]
        if n_users in self._looks:
            self._plan(answer, self._looks[n_users])

    def _plan(self, noisy: Tensor, look: int) -> None:
        torch, own = self._torch, self._algorithm
        length, n_states, _, _ = self.shape
        is_bernstein = own.published is None and own.bonus == "bernstein"
        values, lower = (torch.zeros((len(noisy), length + 1, n_states), **self._on) for _ in range(2))
        policy = torch.empty((len(noisy), length, n_states), **self._where)
        for h in range(length - 1, -1, -1):
            rows, after, cap = noisy[:, h], values[:, h + 1], own.caps[h] if own.published is None else float(length)
            if own.published is not None:
                index = self._published(rows, after)
            elif is_bernstein:
                index, floor = self._bernstein(rows, after, lower[:, h + 1], own.caps[h + 1], look)
                lower[:, h] = floor.amax(-1).clamp(0.0, cap)
            else:
                index = self._hoeffding(rows, after, own.caps[h + 1], look)
            policy[:, h] = lowest_of_the_largest(index)
            values[:, h] = index.amax(-1).clamp(0.0, cap)
        self._policy = policy

    def _visits(self, rows: Tensor, look: int) -> tuple[Tensor, Tensor, Tensor]:
        """(n_reps, S, A) each: u, the slack of a mean over it, and the sum of the counts."""
        layout, scale, n_states = self._algorithm.layout, self._algorithm.beta_scale, self.shape[1]
        error = scale * self._algorithm.errors[look].visits
        total = rows[..., :n_states].sum(-1)
        visits = (1.0 - layout.count_share) * total + error
        if layout.count_share:
            visits = visits + layout.count_share * rows[..., -1] / layout.count_weight
        is_few = visits < 1.0
        slack = self._torch.where(is_few, max(2.0 * error, scale), 2.0 * error)
        return self._torch.where(is_few, 1.0, visits), slack, total

    def _hoeffding(self, rows: Tensor, after: Tensor, cap: float, look: int) -> Tensor:
        """(n_reps, S, A) optimistic values, with widths from the range of values."""
        own, n_states = self._algorithm, self.shape[1]
        center, middle, errors = own.layout.reward_center, 0.5 * cap, own.errors[look]
        visits, slack, _ = self._visits(rows, look)
        chance = (1.0 + cap) * (0.5 * visits * own.log).sqrt()
        width = own.beta_scale * (errors.reward + middle * errors.total + chance)
        moved = _mean(rows[..., :n_states], after - middle)
        return center + middle + (rows[..., n_states] + moved + (own.layout.reward_reach + middle) * slack + width) / visits

    def _bernstein(self, rows: Tensor, high: Tensor, low: Tensor, cap: float, look: int) -> tuple[Tensor, Tensor]:
        """(n_reps, S, A) optimistic and pessimistic values, with widths from variances."""
        own, n_states, scale = self._algorithm, self.shape[1], self._algorithm.beta_scale
        errors, log = own.errors[look], own.log
        visits, slack, total = self._visits(rows, look)
        mean = own.layout.reward_center + rows[..., n_states] / visits
        width = (own.layout.reward_reach * slack + scale * (errors.reward + (0.5 * visits * log).sqrt())) / visits
        index, floor = mean + width, mean - width
        if cap <= 0.0:
            return index, floor
        half, counts = 0.5 * cap, rows[..., :n_states]
        positive, negative = counts.clamp(min=0.0), counts.clamp(max=0.0)
        above = _mean(positive, high) + _mean(negative, low) - half * total
        below = _mean(positive, low) + _mean(negative, high) - half * total
        n = total.clamp(min=1.0)
        middle = (half + 0.5 * (above + below) / n).clamp(0.0, cap)[..., None]
        square = self._torch.maximum((high[:, None, None] - middle) ** 2, (low[:, None, None] - middle) ** 2)
        spread = ((counts * square).sum(-1) + square.amax(-1) * errors.total).clamp(min=0.0)
        span = (high.amax(-1) - low.amin(-1))[:, None, None]
        chance = (2.0 * spread * log).sqrt() + 3.0 * cap * log + span * errors.function
        chance = scale * (chance + half * (1.0 - total).clamp(min=0.0))
        return index + half + (above + chance) / n, floor + half + (below - chance) / n

    def _published(self, rows: Tensor, after: Tensor) -> Tensor:
        """(n_reps, S, A) optimistic values of PUCB."""
        own, (length, n_states, _, _) = self._algorithm, self.shape
        assert own.published is not None
        limit, log = own.beta_scale * own.published[0], own.published[1]
        visits = rows[..., n_states + 1]
        part = limit / visits
        chance = own.beta_scale * (length + 1.0) * (2.0 * log / (visits - limit).clamp(min=1.0)).sqrt()
        moved = rows[..., n_states] + _mean(rows[..., :n_states], after)
        index = moved / visits + chance + (1.0 + n_states * length) * (3.0 * part + 2.0 * part * part)
        return self._torch.where((visits < 2.0 * limit) | (visits <= 0.0), 2.0 * length, index)


def _mean(counts: Tensor, values: Tensor) -> Tensor:
    """(n_reps, S, A): counts (n_reps, S, A, S) times values (n_reps, S) of the next states."""
    return (counts @ values[:, None, :, None])[..., 0]
