"""LinUCB and GP-UCB on a device: ridge regression on noisy sums, and the choice of largest upper confidence bound."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from bandana.algorithms.bandits.contextual.lin_ucb import LinUCB
from bandana.algorithms.protocol import Record
from bandana.algorithms.regression.ridge_numba import PIVOT
from bandana.algorithms.ties import TIE
from bandana.audits.neighbors.pairs import Pair

Tensor = Any


class OptimisticRegression:
    """Features, contributions and widths are the algorithm's own, computed once for each user and action; see `Twin`.

    Attributes:
      ends: after each user.
      shape: (d, d + 1).
    """

    def __init__(self, algorithm: LinUCB, pair: Pair, device: str) -> None:
        import torch

        self._torch, self._algorithm, self._pair = torch, algorithm, pair
        self._on = {"dtype": torch.float64, "device": device}
        d = algorithm.n_features
        self.shape, self.ends = (d, d + 1), range(1, pair.data.n_users + 1)
        self._offered: dict[tuple[int, bool], tuple[Tensor, Tensor, Tensor]] = {}

    def begin(self, n_reps: int) -> None:
        """The model before the first round."""
        _, model = self._algorithm.init(n_reps)
        self._estimate, self._inverse, self._width = (self._tensor(each) for each in model[:3])

    def _tensor(self, array: Any) -> Tensor:
        return self._torch.tensor(np.ascontiguousarray(array), **self._on)

    @cached_property
    def _tables(self) -> tuple[Any, Any]:
        span = self._algorithm.reward_range
        return self._pair.data.clipped(span), self._pair.neighbor.clipped(span)

    def _of(self, user: int, on_neighbor: bool) -> tuple[Tensor, Tensor, Tensor]:
        """(n_actions, d) x of each action, (d^2, n_actions) products of its entries, (n_actions, n_free) contributions."""
        on_neighbor = on_neighbor and user in (self._pair.record, *self._pair.others)
        if (user, on_neighbor) not in self._offered:
            table, n = self._tables[on_neighbor], self._algorithm.n_actions
            users, actions = np.full(n, user), np.arange(n)
            contexts, ones = table.contexts(users), np.ones(n, dtype=np.int64)
            record = Record(users, ones, contexts, actions[:, None], table.respond(users, ones, actions)[:, None])
            x = self._algorithm.offered(contexts[:1])[0]
            value = self._algorithm.statistic(self._algorithm.init(1)[1], record)
            added = self._algorithm.sums.mechanism.whiten(value)  # type: ignore[attr-defined]
            squares = (x[:, :, None] * x[:, None, :]).reshape(n, -1).T
            self._offered[user, on_neighbor] = self._tensor(x), self._tensor(squares), self._tensor(added)
        return self._offered[user, on_neighbor]

    def play(self, user: int, on_neighbor: bool) -> tuple[Tensor, Tensor]:
        """The lowest of the actions with the largest upper bounds, and what its record adds."""
        x, squares, added = self._of(user, on_neighbor)
        square = self._inverse.reshape(len(self._inverse), -1) @ squares
        index = self._estimate @ x.T + self._width[:, None] * square.clamp(min=0.0).sqrt()
        actions = lowest_of_the_largest(index)
        return actions[:, None], added[actions]

    def learn(self, answer: Tensor, step: int) -> None:
        """Regresses: Cholesky's factorization where it is sound, else eigenvalues raised as in `raise_eigenvalues`."""
        torch, d = self._torch, self.shape[0]
        added, least, _ = self._algorithm.shift(step)
        matrix = answer[:, :, :d] + added * torch.eye(d, **self._on)
        root, info = torch.linalg.cholesky_ex(matrix)
        pivots, diagonal = (torch.diagonal(each, dim1=1, dim2=2) for each in (root, matrix))
        is_positive = (info == 0) & (pivots**2 > PIVOT * diagonal.abs()).all(1)
        root = torch.where(is_positive[:, None, None], root, torch.eye(d, **self._on))
        self._inverse, log_det = torch.cholesky_inverse(root), 2 * pivots.log().sum(1)
        bad = (~is_positive).nonzero()[:, 0]
        if len(bad):
            values, vectors = torch.linalg.eigh(matrix[bad])
            values = values.clamp(min=float(least))
            self._inverse[bad] = (vectors / values[:, None, :]) @ vectors.mT
            log_det[bad] = values.log().sum(1)
        self._estimate = (self._inverse @ answer[:, :, d:])[:, :, 0]
        own, scale = self._algorithm, self._algorithm.beta_scale
        self._width = self._tensor(scale * (own.regression.radius(log_det.cpu().numpy(), step) + own.misfit(step)))


def lowest_of_the_largest(index: Tensor) -> Tensor:
    """(...) for (..., n_actions): the lowest of the actions that tie with the largest."""
    largest = index.amax(-1, keepdim=True)
    return (index >= largest - TIE * largest.abs()).int().argmax(-1)
