"""Structures of how releases touch a user with several records, which noise is calibrated to at the level of users."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from bandana.privacy_core.accounting.events import Event, GaussianEvent, LaplaceEvent, PureEvent
from bandana.privacy_core.accounting.factorization import factorize
from bandana.privacy_core.accounting.participation import Participation, enclosing
from bandana.privacy_core.accounting.returning import squared_sensitivities
from bandana.privacy_core.accounting.structures import Factorized, Noise, Releases, Structure, Tree
from bandana.privacy_core.checks import at_least


@dataclass(frozen=True)
class ByUsers:
    """Events that touch the worst user, where `of` says what touches the worst record.

    With `longest` known, a user's records are spread over several phases or steps as their separation asks; else all of
    them may lie in one, which costs m times what one record costs, for any structure. `calibrate(promise, ByUsers(...))`
    answers the noise multiplier, over the sensitivity to one record, with which the promise holds for users.

    Attributes:
      of: `Releases`, whose phases hold consecutive records; `Tree` or `Factorized`, whose steps do.
      users: which records may be one user's.
      longest: most records in one phase or step; None: any number.
    """

    of: Structure
    users: Participation
    longest: int | None = None

    def __post_init__(self) -> None:
        if self.longest is not None:
            at_least("longest", self.longest, 1)

    def events(self, multiplier: float, noise: Noise) -> dict[Event, int]:
        """One event that dominates what any user pays, at the given noise multiplier and kind of noise.

        Raises:
          ValueError: the structure has parts of several kinds of noise, or Laplace noise is asked of a factorized sum.
        """
        of_one = self.of.events(multiplier, noise)
        most = self.users.most
        if noise is LaplaceEvent:
            (event, count), *others = of_one.items()
            if others or not isinstance(event, LaplaceEvent):
                raise ValueError(f"noise for users is calibrated to one kind of noise, got {self.of}")
            return {PureEvent(most * count * event.epsilon): 1}
        if not all(isinstance(event, GaussianEvent) for event in of_one):
            raise ValueError(f"noise for users is calibrated to one kind of noise, got {self.of}")
        times = most**2 if self.longest is None else _times(self.of, self.users, self.longest)  # type: ignore[arg-type]
        if times is None:  # of k records at most k times the root of what one pays
            times = most**2
        rho = times * sum(event.rho * count for event, count in of_one.items())
        return {GaussianEvent(1 / math.sqrt(2 * rho)): 1}


@lru_cache(maxsize=256)
def _times(of: Structure, users: Participation, longest: int) -> float | None:
    """Returns the times the rho of the worst record a user pays at most; None where nothing better than m^2 is known."""
    match of:
        case Releases():
            whole, rest = divmod(users.most, users.within(longest))
            return float(whole * users.within(longest) ** 2 + rest**2)
        case Factorized(n_steps, n_buffers):
            factors = factorize(n_steps, n_buffers)
            return squared_sensitivities(factors, users.most, users.steps_apart(longest))[-1]
        case Tree():
            return _tree(of, users, longest)
    return None


def _tree(tree: Tree, users: Participation, longest: int) -> float:
    """The same of a tree of which every complete node is released, as Honaker's; the plain one releases fewer.

    Nodes of one length are alike: one table a length, made of two of the length before.
    """
    squares = np.arange(users.most + 1.0) ** 2
    table, roots = np.zeros(1), []
    for level in range(tree.n_nodes):
        parts = [table, table] if level else []
        table = enclosing(squares, parts, users.within(longest << level))
        if tree.n_steps >> level & 1:
            roots.append(table)
    return float(enclosing(np.zeros(users.most + 1), roots, users.most)[-1]) / tree.n_nodes
