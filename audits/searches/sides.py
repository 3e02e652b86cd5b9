"""One case of the search played on both data sets: a run on D, then the same run scripted on D'."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from bandana.algorithms.coins import Coins
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.protocol import Algorithm, EpisodicStream, FloatArray, IntArray, Stream
from bandana.algorithms.run import run
from bandana.audits.searches.cases import Case
from bandana.audits.searches.states import Parting, StateLog, first_parting
from bandana.audits.searches.widened import NEVER, WideningLedger
from bandana.privacy_core import (
    Interval,
    Ledger,
    LiveLedger,
    Mechanism,
    Participation,
    Release,
    ReproducibleNoise,
    ScriptedLedger,
    Span,
)
from bandana.privacy_core.ledger import Reads

_WIDE = 0x7769_6465
REPLICATES = 32
"""Runs of each case, alike but for their noise: a batch of 32 takes hardly longer than one run."""


class Call(NamedTuple):
    """A release as it was requested."""

    phase: int
    mechanism: Mechanism
    records: Span
    reps: IntArray | None


class _Noted:
    """A ledger's door, and in which phase of the run each release was requested."""

    def __init__(self, ledger: Ledger, log: ActionLog) -> None:
        self.n_reps = ledger.n_reps
        self.calls: list[Call] = []
        self._ledger, self._log = ledger, log

    def release(self, mechanism: Mechanism, value: FloatArray, **reads: Unpack[Reads]) -> FloatArray:
        """Releases through the ledger, and notes the call."""
        self.calls.append(Call(len(self._log.user) - 1, mechanism, reads["records"], reads.get("reps")))
        return self._ledger.release(mechanism, value, **reads)


class Side(NamedTuple):
    """One side of a case: what was played, and what was requested of the ledger."""

    log: ActionLog
    calls: list[Call]

    def arms(self, rep: int, n_rounds: int, n_steps: int) -> NDArray[np.int64]:
        """(n_rounds * n_steps,) of one replicate, step after step; -1 where it did not play."""
        arms = np.full((n_rounds, n_steps), -1, dtype=np.int64)
        log = self.log
        for user, count, actions, step in zip(log.user, log.n_records, log.actions, log.step, strict=True):
            arms[user[rep] : user[rep] + count[rep], step] = actions[rep]
        return arms.ravel()

    def states(self, rep: int) -> tuple[tuple[int, ...], ...]:
        """States of one replicate, episode by episode."""
        return tuple(tuple(states[rep].tolist()) for states in self.log.states)

    def starts(self, rep: int) -> dict[int, int]:
        """First round -> length of the phases of one replicate."""
        phases = zip(self.log.user, self.log.n_records, strict=True)
        return {int(user[rep]): int(count[rep]) for user, count in phases if count[rep]}

    def own(self, rep: int) -> list[tuple[int, int, int]]:
        """(call, row, rounds played when it was made) of the releases of one replicate, in order."""
        own = []
        for call, request in enumerate(self.calls):
            row = rep if request.reps is None else int(np.searchsorted(request.reps, rep))
            if request.reps is None or (row < len(request.reps) and request.reps[row] == rep):
                rounds = self.log.user[request.phase][rep] + self.log.n_records[request.phase][rep]
                own.append((call, row, int(rounds)))
        return own


class Sides(NamedTuple):
    """Both runs of a case, or of many cases at once, one a replicate."""

    data: Side
    neighbor: Side
    live: LiveLedger
    scripted: ScriptedLedger
    case_of: Callable[[int], Case]
    """Case that a replicate played."""
    records: IntArray
    """(n_reps,) the record that differs."""
    hidden: IntArray
    """(n_reps,) the record whose own actions do not count, see `Pair.hidden_record`."""
    parted: Parting
    """Where the released states differ first."""
    widened: IntArray
    """(n_reps,) the release that was drawn with a larger scale, or -1; see `bandana.audits.searches.widened`."""
    others: tuple[int, ...] = ()
    """Other records of the same user that differ too."""
    users: Participation | None = None
    """Records that may be one user's, where a claim is on all of them."""

    def n_read(self, release: Release) -> IntArray:
        """(n_rows,) how many of the records that differ the exact value may depend on."""
        own = self.records if release.reps is None else self.records[release.reps]
        return np.asarray(release.reads(own).astype(np.int64) + sum(release.reads(record) for record in self.others))


def play(algorithm: Algorithm, case: Case, reward_range: Interval, users: Participation | None = None) -> Sides:
    """Runs the algorithm on D, and then on D' with the noisy outputs, and the coins, of the first run."""
    pair = case.pair(reward_range)
    alike = np.full(REPLICATES, 1)
    sides = play_streams(
        algorithm, (pair.data, pair.neighbor), case.seed, lambda rep: case, case.record * alike, case.hidden_record * alike,
        case.wide * alike,
    )  # fmt: skip
    return sides._replace(others=case.others, users=users)


def play_streams(
    algorithm: Algorithm,
    streams: tuple[Stream | EpisodicStream, Stream | EpisodicStream],
    seed: int,
    case_of: Callable[[int], Case],
    records: IntArray,
    hidden: IntArray,
    wide: IntArray | None = None,
) -> Sides:
    """Runs the algorithm on one stream, and then on another with the noisy outputs, and the coins, of the first run.

    Args:
      algorithm: what to audit.
      streams: D and D', of which each replicate may have its own.
      seed: of the noise.
      case_of: what a replicate plays.
      records: (n_reps,) see `Sides`.
      hidden: (n_reps,) see `Sides`.
      wide: (n_reps,) the release that is drawn with a larger scale, see `WideningLedger`; None: none.
    """
    n_reps, (data, neighbor), root = len(records), streams, np.random.SeedSequence(seed)
    coins = Coins(root, n_reps)
    live = LiveLedger(n_reps, ReproducibleNoise(root), keeps_transcript=True, n_records=data.n_users)
    wanted = np.full(n_reps, NEVER) if wide is None else wide
    widening = WideningLedger(live, ReproducibleNoise(np.random.SeedSequence((seed, _WIDE))), records, wanted)
    first, mine = _Noted(widening, ActionLog()), StateLog(algorithm, n_reps)
    run(mine, data, first, observers=[first._log], coins=coins)
    scripted = ScriptedLedger(n_reps, live.transcript, keeps_values=True)
    second, theirs = _Noted(scripted, ActionLog()), StateLog(algorithm, n_reps)
    run(theirs, neighbor, second, observers=[second._log], coins=coins)
    scripted.finish()
    sides = Side(first._log, first.calls), Side(second._log, second.calls)
    parted = first_parting(mine, theirs, hidden)
    return Sides(*sides, live, scripted, case_of, records, hidden, parted, widening.widened)
