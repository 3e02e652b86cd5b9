"""The one loop: a single online run is the batch of one, an experiment a batch of seeds, an audit a batch of 1e5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from algorithms.protocol import Algorithm, ContextualStream, FloatArray, Observer, Record, Stream
from privacy_core import Ledger


def run(
    algorithm: Algorithm,
    stream: Stream,
    ledger: Ledger,
    *,
    horizon: int | None = None,
    observers: Sequence[Observer] = (),
    jump: bool = True,
) -> tuple[Any, Any]:
    """Plays `algorithm` against `stream` in every replicate of `ledger`.

    Args:
      algorithm: decides and learns.
      stream: answers; its rewards are clipped to the algorithm's range.
      ledger: the only source of privacy noise, with `n_reps` replicates.
      horizon: number of users, at most the stream's; None means all of them.
      observers: called with each record.
      jump: absorb a phase with one action at once. False plays record by record, with the same decisions, and on a
        table with the same numbers bit for bit. Where users have contexts the loop never jumps.

    Returns:
      the final sensitive and released states.

    Raises:
      ValueError: the stream and the algorithm disagree on the number of actions or on the contexts, or the horizon does
        not fit.
    """
    total = stream.n_users if horizon is None else horizon
    if stream.n_actions != algorithm.n_actions:
        raise ValueError(f"the algorithm has {algorithm.n_actions} actions, the stream {stream.n_actions}")
    is_contextual = isinstance(stream, ContextualStream)
    if not (1 if is_contextual else algorithm.n_actions) <= total <= stream.n_users:
        least = "1" if is_contextual else f"the number of actions ({algorithm.n_actions})"
        raise ValueError(
            f"horizon must lie between {least} and the number of users in the stream ({stream.n_users}), got {total}"
        )
    stream = stream.clipped(algorithm.reward_range)
    offered = stream if isinstance(stream, ContextualStream) else None
    _check_contexts(algorithm, offered)
    sensitive, released = algorithm.init(ledger.n_reps)
    user = np.zeros(ledger.n_reps, dtype=np.int64)
    while True:
        context: FloatArray | None = None if offered is None else offered.contexts(user)
        actions = algorithm.act(released, context, 0)
        left = total - user
        n_records = np.minimum(algorithm.hold(released, actions) if jump and offered is None else 1, left)
        rewards = stream.respond(user, n_records, actions)
        record = Record(user, n_records, context, actions[:, None], rewards[:, None])
        for observer in observers:
            observer.observe(record)
        sensitive, released = algorithm.absorb(sensitive, released, record, ledger)
        user = user + n_records  # a new array: records keep theirs
        if int(user.min()) == total:
            return sensitive, released


def _check_contexts(algorithm: Algorithm, offered: ContextualStream | None) -> None:
    wanted = getattr(algorithm, "context_dimension", None)
    found = None if offered is None else offered.context_dimension
    if wanted is not None and wanted != found:
        told = "has no contexts" if found is None else f"has contexts of dimension {found}"
        raise ValueError(f"the algorithm decides from contexts of dimension {wanted}, the stream {told}")
