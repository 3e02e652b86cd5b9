"""Faults that are planted in live policies: each breaks one rule, and `bandana audit-live` must catch it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy.engine import RowMapping

from bandana.flows.annexes.live.api import restore
from bandana.flows.annexes.live.audit import Subject
from bandana.flows.annexes.live.ledgers import Released
from bandana.flows.annexes.live.policy import Policy, Told
from bandana.flows.annexes.live.rules import Progress
from bandana.flows.annexes.live.secrecy import packed
from bandana.flows.annexes.live.store import POLICIES, RECORDS, Session


class _CountsTwice(Policy):
    """A second reward adds to the first."""

    def _accept(self, session: Session, row: RowMapping, value: float) -> Told:
        if row["entered"] or row["reward"] is None:
            return super()._accept(session, row, value)
        both = self._reward(row) + value
        session.update(RECORDS, row["number"], reward=self._secrecy.seal(packed(both), f"reward {row['number']}"))
        return "kept"


class _ShowsEarly(Policy):
    """Noisy outputs are logged before the commit, so that a crash draws them anew."""

    def _keep(
        self, session: Session, status: RowMapping, progress: Progress, n_asked: int, now: float
    ) -> list[Released]:
        made = super()._keep(session, status, progress, n_asked, now)
        for release in made:
            self._world.publish({"event": "release", **release._asdict()})
        return made


_LAST = defaultdict[str, tuple[float, float]](lambda: (0.0, 0.0))
"""Address of a store -> the last reward that was told, and when."""


class _Remembers(Policy):
    """Remembers the last reward and its time beside the store, for faults that show them."""

    def _accept(self, session: Session, row: RowMapping, value: float) -> Told:
        _LAST[self.store.address] = value, self._world.clock()
        return super()._accept(session, row, value)


class _StampsRows(_Remembers):
    """Released rows say when the last reward came."""

    def _row(self, release: Released) -> dict[str, object]:
        return {**super()._row(release), "mechanism": f"{release.mechanism} at {_LAST[self.store.address][1]}"}


class _NamesRewards(_Remembers):
    """The next id ends with the last reward."""

    def _token(self) -> str:
        return f"{super()._token()}-{_LAST[self.store.address][0]:g}"


class _ShiftsBoundaries(Policy):
    """Good rewards enter at once, others at their deadline: a batch ends earlier or later by what a person told."""

    def _due(self, session: Session, progress: Progress, n_asked: int, now: float) -> Sequence[RowMapping]:
        named = progress.named
        rows = session.waiting(
            None if named is None else named.action, 1, before=n_asked + 1 - self.router.wait,
            asked_by=now - self.router.deadline, or_told=True,
        )  # fmt: skip
        middle = sum(self.router.reward_range) / 2
        return [row for row in rows if row["asked"] <= now - self.router.deadline or self._reward(row) > middle]


class _LeavesOutTheSilent(Policy):
    """Who did not answer never enters: batches count answers."""

    def _due(self, session: Session, progress: Progress, n_asked: int, now: float) -> Sequence[RowMapping]:
        while rows := super()._due(session, progress, n_asked, now):
            if answered := [row for row in rows if row["reward"] is not None]:
                return answered
            for row in rows:
                session.update(RECORDS, row["number"], entered=True)
        return []


def _restores_anything(address: str, path: str, *, last_release: int) -> None:
    """Restores a snapshot although there were releases since."""
    rows = json.loads(Path(path).read_text("utf-8"))["rows"]
    restore(address, path, last_release=rows[POLICIES.name][0]["releases"])


FAULTS = {
    "a reward told twice counts twice": Subject(_CountsTwice),
    "noise redrawn after a crash": Subject(_ShowsEarly),
    "state restored after a release": Subject(restore=_restores_anything),
    "a timestamp in a released row": Subject(_StampsRows),
    "rewards shift a batch's boundary": Subject(_ShiftsBoundaries),
    "an id that encodes the reward": Subject(_NamesRewards),
    "batches count answers": Subject(_LeavesOutTheSilent),
}
"""Name of a planted fault -> the code with it."""
