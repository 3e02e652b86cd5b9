"""The same algorithm at another budget: every release goes through its own mechanism with more noise, or less.

A Gaussian budget is inversely proportional to the noise: an algorithm that is mu-GDP is (mu / k)-GDP with k times the noise,
and a fault of its size, span or sensitivity has the same factor there. So a claim at which no number of replays can tell a
fault from none (mu = 0.01, or mu = 30) is also audited at a test budget, of about mu = 1, where they can.
"""

from __future__ import annotations

from dataclasses import dataclass

from bandana.algorithms.protocol import Algorithm, FloatArray
from bandana.audits.faults.wrapped import ReleaseRequest, WithLedgerWrapper
from bandana.privacy_core import Mechanism
from bandana.privacy_core.checks import positive

_MOST_KNOWN = 64


class NotRescalable(ValueError):  # noqa: N818  (it says what the mechanism is)
    """A release through a mechanism that has no `scaled`: nobody knows how to give it more noise."""


@dataclass(frozen=True)
class Rescaled(WithLedgerWrapper):
    """An algorithm each of whose releases has `factor` times its noise, at the cost of that noise.

    Everything else is the algorithm's: what it plays, for how long, what it releases, and which records it charges. It
    believes its noise to be what it was, so that its indices and radii are those of the original budget: it may learn worse,
    and a theorem on its regret says nothing here. Privacy does not depend on that: decisions are post-processing.

    Unit of privacy: as the algorithm's. Claim: of a mu-GDP algorithm whose noise is all Gaussian, (mu / factor)-GDP; of
    an epsilon-DP one whose noise is all Laplace, (epsilon / factor)-DP; a release without noise stays one.
    Cost: one lookup a release.

    Attributes:
      factor: by which all noise is multiplied, above 0.
    """

    factor: float

    def __post_init__(self) -> None:
        positive("factor", self.factor)

    def empty_memory(self, n_reps: int) -> dict[int, tuple[Mechanism, Mechanism]]:
        """An empty memory: identity -> (the mechanism, what replaced it), so that each is built once."""
        return {}

    def answer(self, request: ReleaseRequest, memory: dict[int, tuple[Mechanism, Mechanism]]) -> FloatArray:
        """The ledger's answer with the mechanism's noise rescaled.

        Raises:
          NotRescalable: the mechanism cannot be scaled.
        """
        # By identity: mechanisms that compare equal may still hold a state of their own.
        mechanism = request.mechanism
        known = memory.get(id(mechanism))
        if known is None:
            scaled = getattr(mechanism, "scaled", None)
            if not callable(scaled):
                raise NotRescalable(
                    f"{type(mechanism).__name__} has no scaled(factor), which answers the same mechanism with `factor` "
                    f"times the noise: without it the algorithm cannot be audited with {self.factor:.6g} times its noise"
                )
            if len(memory) >= _MOST_KNOWN:
                memory.clear()
            known = memory[id(mechanism)] = (mechanism, scaled(self.factor))
        return request.release(mechanism=known[1])


def rescaled(algorithm: Algorithm, factor: float) -> Rescaled:
    """The same algorithm with `factor` times its noise: at mu / factor of a Gaussian budget mu.

    Args:
      algorithm: whose noise is to be scaled; planted faults go on top of the result, not below.
      factor: above 0; below 1 it takes noise away, and the budget grows.

    Returns:
      an algorithm; it raises `NotRescalable` in the run if one of its mechanisms cannot be scaled.

    Raises:
      ValueError: factor is not a finite number above 0.
    """
    return Rescaled(algorithm, factor)
