"""What is audited: an algorithm, its claim, the data that it is replayed on, and its planted faults."""

from __future__ import annotations

from dataclasses import dataclass

from bandana.algorithms.entry import Claim
from bandana.algorithms.environments.episodes import Table
from bandana.algorithms.protocol import Algorithm
from bandana.audits.faults.fault import Control
from bandana.privacy_core import Participation, Relation


@dataclass(frozen=True)
class Trial:
    """An algorithm with its claim, and the data that it is replayed on.

    Attributes:
      algorithm: what to audit.
      claim: what it promises.
      table: the data set, as long as each replay.
      probes: records to plant canaries at.
      users: which records may be one user's, where the claim is on all records of a user; None: it is on one record.
      is_test_budget: its claim is as weak as its noise needs, so that what is spent must be within reach, and not the claim.
    """

    algorithm: Algorithm
    claim: Claim
    table: Table
    probes: tuple[int, ...]
    is_test_budget: bool = False
    users: Participation | None = None

    @property
    def private_records(self) -> bool:
        """Whether a record is what its user brings, contexts or states, and the rewards; or the rewards alone."""
        return self.claim.relation is not Relation.REPLACE_REWARD


@dataclass(frozen=True)
class Audited:
    """All that one audit is made of.

    Attributes:
      trial: at the claimed budget.
      at_test_budget: at the test budget; None where there is none.
      controls: the planted faults, with those that are no faults of this algorithm.
    """

    trial: Trial
    at_test_budget: Trial | None
    controls: tuple[Control, ...]

    @property
    def planted(self) -> tuple[Control, ...]:
        """The controls that are faults of this algorithm."""
        return tuple(control for control in self.controls if control.is_fault(self.trial.algorithm))
