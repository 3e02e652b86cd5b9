"""What can be wrong where a promise is made to users who have several records."""

from __future__ import annotations

from bandana.audits.faults.fault import BOTH, Control
from bandana.audits.faults.releases import planted, through
from bandana.audits.outcome import SAMPLING
from bandana.privacy_core import Participation


def counted_as_one_record(users: Participation, *, is_gaussian: bool) -> Control:
    """Noise as for one record of a user, m times too little where all of them lie in one release.

    The ledger's own charges show it where all noise is Gaussian; of other noise no mu is exact, and replays must find it.

    Args:
      users: which records may be one user's, at least 2.
      is_gaussian: whether all noise of the algorithm is Gaussian.
    """
    return Control(
        "user-counted-as-one-record",
        f"The noise protects one record, though a user has {users.most} ({users.most} mu0)",
        planted(through(lambda mechanism: mechanism.scaled(1 / users.most))),
        BOTH if is_gaussian else (SAMPLING,),
    )
