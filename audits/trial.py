"""Object of an audit: an algorithm, its claim, the data that it is replayed on, and its planted faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from bandana.algorithms.entry import Claim
from bandana.algorithms.environments.episodes import Table
from bandana.algorithms.protocol import Algorithm
from bandana.audits.faults.fault import Control
from bandana.audits.outcome import Setup
from bandana.privacy_core import Participation, Relation


class Whole(NamedTuple):
    """An algorithm as a benchmark plays it, and data as long as the benchmark, or as memory allows."""

    algorithm: Algorithm
    table: Table
    horizon: int
    """Records of the benchmark."""


@dataclass(frozen=True)
class Trial:
    """An algorithm with its claim, and the data that it is replayed on.

    Attributes:
      algorithm: what to audit.
      claim: what it promises.
      table: the data set, as long as each replay.
      probes: records to plant canaries at.
      users: which records may be one user's, where the claim is on all records of a user; None: it is on one record.
      whole: the same over a benchmark's whole horizon, which replays are shorter than; None where they are not.
      is_test_budget: its claim is as weak as its noise needs, so that what is spent must be within reach, and not the claim.
    """

    algorithm: Algorithm
    claim: Claim
    table: Table
    probes: tuple[int, ...]
    is_test_budget: bool = False
    users: Participation | None = None
    whole: Whole | None = None

    def planted(self, control: Control) -> Trial:
        """The same with a fault in it."""
        whole = None if self.whole is None else self.whole._replace(algorithm=control.plant(self.whole.algorithm))
        return replace(self, algorithm=control.plant(self.algorithm), whole=whole)

    @property
    def private_records(self) -> bool:
        """True if a record is what its user brings, contexts or states, and the rewards; or the rewards alone."""
        return self.claim.relation is not Relation.REPLACE_REWARD


@dataclass(frozen=True)
class Audited:
    """All that one audit is made of.

    Attributes:
      trial: at the claimed budget.
      at_test_budget: at the test budget; None where there is none.
      controls: the planted faults, with those that are no faults of this algorithm.
      subject: kind, name and source of the algorithm.
      about: what a reader needs to repeat the audit.
      caveats: what is known to leave the outcome without meaning, in words.
    """

    trial: Trial
    at_test_budget: Trial | None
    controls: tuple[Control, ...]
    subject: Mapping[str, str] = field(default_factory=dict)
    about: Setup = field(default_factory=Setup)
    caveats: tuple[str, ...] = ()

    @property
    def planted(self) -> tuple[Control, ...]:
        """The controls that are faults of this algorithm."""
        return tuple(control for control in self.controls if control.is_fault(self.trial.algorithm))

    @property
    def notes(self) -> Setup:
        """`about`, with the controls that are no faults of this algorithm."""
        planted, left_out = self.planted, dict[str, tuple[str, ...]]()
        for control in self.controls:
            if control not in planted:
                kept = {search for other in planted if other.name == control.name for search in other.caught_by}
                rest = [search for search in control.caught_by if search not in kept] if kept else []
                left_out[control.name] = tuple(dict.fromkeys((*left_out.get(control.name, ()), *rest)))
        return replace(self.about, not_planted=left_out)
