"""Faults that can be made where a promise is made to users who have several records."""

from __future__ import annotations

from collections.abc import Iterable

from bandana.audits.faults.fault import BOTH, Control, caught_as
from bandana.audits.faults.releases import planted, scaled, through
from bandana.audits.outcome import NOISE, SAMPLING
from bandana.privacy_core import Participation

_SMALL = {"dp-ucb": {"noise-halved": (NOISE,)}}
"""Label of an entry -> fault -> the audits that must catch it. A user of four rounds is in n = 32 nodes of DP-UCB's tree
of 128 rounds, with epsilon/n in each. With half the noise, 2 epsilon/n in each is like mu = 2 epsilon/sqrt n, 0.29 for
epsilon = 0.81, and exceeds epsilon only in outcomes so rare that replays do not see them."""


def of_users(label: str, controls: Iterable[Control], users: Participation, *, is_gaussian: bool) -> tuple[Control, ...]:
    """The faults of an entry where users have several records: those that it has with single ones, and one more.

    Args:
      label: of the entry.
      controls: its faults with single records.
      users: see `counted_as_one_record`.
      is_gaussian: see there.
    """
    return (*caught_as(_SMALL.get(label, {}), controls), counted_as_one_record(users, is_gaussian=is_gaussian))


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
        planted(through(lambda mechanism: scaled(mechanism, 1 / users.most))),
        BOTH if is_gaussian else (SAMPLING,),
    )
