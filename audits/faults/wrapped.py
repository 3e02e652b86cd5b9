"""An algorithm whose ledger is wrapped: how audits plant faults and rescale noise.

The algorithm stays as it is; each of its releases goes through the wrapper. What the wrapper remembers of a run is kept in
the sensitive state, so that nothing outlives the run and replicates stay apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Unpack

from bandana.algorithms.protocol import Algorithm, FloatArray, IntArray, Record
from bandana.audits.faults.fault import State
from bandana.privacy_core import Carried, Ledger, Mechanism, Span
from bandana.privacy_core.ledger import Reads


def delegated(owner: str, name: str, *default: object) -> Any:
    """A property that reads an attribute of what the field `owner` holds.

    Args:
      owner: name of the field.
      name: name of the attribute.
      *default: what is read where there is no such attribute; none: an AttributeError is raised.
    """
    return property(lambda self: getattr(getattr(self, owner), name, *default))


class ReleaseRequest(NamedTuple):
    """Request of an algorithm to its ledger; the fields are those of `Ledger.release`."""

    ledger: Ledger
    mechanism: Mechanism
    value: FloatArray
    records: Span
    reps: IntArray | None
    carried: Carried | None

    @property
    def rows(self) -> slice | IntArray:
        """The replicates that release, as an index."""
        return slice(None) if self.reps is None else self.reps

    def release(self, **changes: Any) -> FloatArray:
        """(n_rows, ...) the ledger's answer to the request, or to one with other fields."""
        _, mechanism, value, records, reps, carried = self._replace(**changes)
        return self.ledger.release(mechanism, value, records=records, reps=reps, carried=carried)


class WrappedLedger:
    """A ledger whose requests are answered by a function."""

    def __init__(self, ledger: Ledger, answer: Callable[[ReleaseRequest], FloatArray]) -> None:
        self.n_reps = ledger.n_reps
        self._ledger, self._answer = ledger, answer

    def release(self, mechanism: Mechanism, value: FloatArray, **reads: Unpack[Reads]) -> FloatArray:
        """The function's answer, of the value's shape."""
        return self._answer(
            ReleaseRequest(self._ledger, mechanism, value, reads["records"], reads.get("reps"), reads.get("carried"))
        )


class WrappedState(NamedTuple):
    """The sensitive state of an algorithm whose ledger is wrapped."""

    inner: State
    """The algorithm's own."""
    memory: Any
    """The wrapper's, of this run."""


@dataclass(frozen=True)
class WithLedgerWrapper:
    """Another algorithm, which sees its ledger through a wrapper; this one changes nothing, subclasses change the answers.

    Attributes:
      honest: the algorithm.
    """

    honest: Algorithm

    n_actions, reward_range, act, hold = (delegated("honest", name) for name in ("n_actions", "reward_range", "act", "hold"))
    context_dimension, episode_length, n_states = (
        delegated("honest", name, None) for name in ("context_dimension", "episode_length", "n_states")
    )
    n_coins = delegated("honest", "n_coins", 0)

    def empty_memory(self, n_reps: int) -> Any:
        """The wrapper's memory at the start of a run; `answer` changes it in place."""
        return None

    def answer(self, request: ReleaseRequest, memory: Any) -> FloatArray:
        """(n_rows, ...) what the algorithm gets for a request to its ledger."""
        return request.release()

    def init(self, n_reps: int) -> tuple[WrappedState, State]:
        """Initial states of the wrapped algorithm, with an empty memory."""
        sensitive, released = self.honest.init(n_reps)
        return WrappedState(sensitive, self.empty_memory(n_reps)), released

    def absorb(self, sensitive: WrappedState, released: State, record: Record, ledger: Ledger) -> tuple[WrappedState, State]:
        """Absorbs a record as the wrapped algorithm does, through the wrapped ledger."""
        wrapped = WrappedLedger(ledger, lambda request: self.answer(request, sensitive.memory))
        inner, released = self.honest.absorb(sensitive.inner, released, record, wrapped)
        return sensitive._replace(inner=inner), released
