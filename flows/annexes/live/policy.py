"""A durable policy: `ask` for an action, `tell` the reward later, from any process."""

from __future__ import annotations

import base64
import json
import math
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sqlalchemy.engine import RowMapping

from bandana.algorithms.protocol import FloatArray
from bandana.flows.annexes.live import logs, rules
from bandana.flows.annexes.live.charging import StreamBook
from bandana.flows.annexes.live.ledgers import NotingLedger, Released, Wrap
from bandana.flows.annexes.live.router import ARRIVAL, Deployed
from bandana.flows.annexes.live.rules import Decision, Entering, Progress
from bandana.flows.annexes.live.secrecy import Secrecy, hashed, number, packed, unpacked
from bandana.flows.annexes.live.states import decode, encode
from bandana.flows.annexes.live.store import FORMAT, POLICIES, RECORDS, RELEASES, STATES, Session, Store, StoreError
from bandana.flows.texts.mistakes import SpecError, shown
from bandana.privacy_core import Ball, NoiseSource

_AT_ONCE = 64
_GRID = 2.0**30
Told = Literal["kept", "duplicate", "late"]
"""Fate of a reward: it counts; an earlier one of the same id does; its record has entered already."""


class ChoiceError(SpecError):
    """An `ask` or a `tell` that is refused; nothing was stored."""


class Choice(NamedTuple):
    """Answer of `ask`."""

    id: str
    """Random name under which the reward is told."""
    action: int


class Privacy(NamedTuple):
    """Three numbers of a policy, in words."""

    claimed: str
    accounted: str
    """Guarantee of the releases so far."""
    left: float | None
    """Epsilon of the largest run that the book still covers; None without a book."""
    n_releases: int
    noise: str


def _toss(n_coins: int) -> FloatArray:
    bits = np.frombuffer(os.urandom(8 * n_coins), np.uint64) >> np.uint64(11)
    return np.asarray(bits.astype(float) * 2.0**-53)[None, :]


@dataclass(frozen=True)
class World:
    """Everything that a policy takes from outside; audits put their own in its place.

    Attributes:
      clock: seconds.
      token: a fresh id.
      toss: coins.
      noise: source of privacy noise; None: secure.
      wrap: what stands before the ledger.
      publish: takes structured log lines, which hold no reward.
      reached: is told when a transaction is `drawn` and when it is `committed`.
    """

    clock: Callable[[], float] = time.time
    token: Callable[[], str] = field(default=lambda: secrets.token_hex(16))
    toss: rules.Toss = _toss
    noise: NoiseSource | None = None
    wrap: Wrap | None = None
    publish: Callable[[Mapping[str, object]], None] = field(default=lambda line: None)
    reached: Callable[[str], None] = field(default=lambda point: None)


class Policy:
    """A policy in a store, as one process sees it; `bandana.live.open` makes it.

    Every method is one transaction, so any number of processes may hold the same policy. `rules` says when records enter,
    and why that keeps the claim.
    """

    def __init__(self, deployed: Deployed, store: Store, secrecy: Secrecy, world: World) -> None:
        self.deployed, self.store, self.router = deployed, store, deployed.router
        self._secrecy, self._world = secrecy, world
        self._ledger = NotingLedger(deployed.ledger(world.noise), world.wrap)
        self._progress: Progress | None = None
        self._identity, self._salt = "", b""

    # --- asking ------------------------------------------------------------------------------------------------------

    def ask(self, context: ArrayLike | None = None, *, person: str | None = None) -> Choice:
        """An action for the next person; the choice is on disk when this returns.

        Args:
          context: (n_actions, d) vectors that describe the person's actions, shortened to norm 1; only where the policy has
            a context dimension.
          person: binds the reward to this person: `tell` must then name the same.

        Raises:
          ChoiceError: the context does not fit, or all persons of the horizon were asked for.
          StoreError: the store cannot be used; nobody was asked for.
        """
        given = self._context(context)
        try:
            with self.store.session() as session:
                status = self._status(session)
                now, n_asked = max(self._world.clock(), status["time"]), status["asked"]
                if self.router.n_asks is not None and n_asked >= self.router.n_asks:
                    raise ChoiceError(f"n_asks: all {n_asked} persons were asked for; open a policy of a longer horizon")
                progress = self._settled(session, status, now)
                decision = progress.named or rules.decide(
                    self.deployed.algorithm, progress.released, given, self._world.toss
                )
                token = self._token()
                session.insert(
                    RECORDS, number=n_asked, id=hashed(token), action=decision.action, asked=now, entered=False,
                    person=None if person is None else hashed(person, self._salt), coins=packed(decision.coins),
                    context=None if given is None else self._secrecy.seal(packed(given), f"context {n_asked}"),
                )  # fmt: skip
                made = self._keep(session, status, progress, n_asked + 1, now)
                self._world.reached("drawn")
            self._progress = progress
            self._ledger.committed()
        except BaseException:
            self._forget()
            raise
        self._world.reached("committed")
        for place, release in enumerate(made, start=status["releases"] + 1):
            self._world.publish({"event": "release", "number": place, "records": [release.start, release.stop]})
        self._world.publish({"event": "ask", "number": n_asked})
        return Choice(token, decision.action)

    def _token(self) -> str:
        """A fresh id, which nobody can guess and which says nothing."""
        return self._world.token()

    def _context(self, context: ArrayLike | None) -> FloatArray | None:
        """(1, n_actions, d) shortened; None where there are none."""
        shape = (self.router.n_actions, self.router.context_dimension)
        if not self.router.is_contextual:
            if context is not None:
                raise ChoiceError("context: this policy has arms; ask without a context")
            return None
        if context is None:
            raise ChoiceError(f"context: missing; give {shape[0]} vectors of length {shape[1]}, one an action")
        try:
            given = np.array(context, dtype=float)
        except (TypeError, ValueError) as error:
            raise ChoiceError(f"context: must be numbers of shape {shape}, got {shown(context)}") from error
        if given.shape != shape:
            raise ChoiceError(f"context: must have shape {shape}, one vector an action, got {given.shape}")
        if not np.isfinite(given).all():
            raise ChoiceError("context: must be finite numbers; it holds NaN or infinity")
        return np.asarray(Ball(1.0).clip(given))[None]

    def _status(self, session: Session) -> RowMapping:
        """The policy's public row, checked against what this process saw of it."""
        status = session.status()
        if status is None:
            raise StoreError(f"store {self.store.address}: it holds no policy {self.store.policy}")
        if self.router.book is not None and status["book"] is None:
            raise StoreError(f"store {self.store.address}: book {self.router.book} was not charged; open the policy again")
        if self._identity not in ("", status["identity"]) or self._ledger.n_charged > status["releases"]:
            raise StoreError(f"store {self.store.address}: another one is in its place since this process opened it")
        if not self._identity:
            self._identity, self._salt = status["identity"], session.state()["salt"]
        return status

    def _settled(self, session: Session, status: RowMapping, now: float) -> Progress:
        """The state after every record within the frontier has entered."""
        progress = self._loaded(session, status)
        while rows := self._due(session, progress, status["asked"], now):
            self._progress = None  # absorbing takes over its memory: it is kept again when the transaction is stored
            for row in rows:
                progress = self._entered(session, progress, row)
        return progress

    def _due(self, session: Session, progress: Progress, n_asked: int, now: float) -> Sequence[RowMapping]:
        """Oldest records within the frontier; of arms one, of the arm that the algorithm named."""
        named = progress.named
        return session.waiting(
            None if named is None else named.action, _AT_ONCE if named is None else 1, before=n_asked + 1 - self.router.wait,
            asked_by=now - self.router.deadline, or_told=self.router.enters == ARRIVAL,
        )  # fmt: skip

    def _entered(self, session: Session, progress: Progress, row: RowMapping) -> Progress:
        """The state after one record; what it read is erased."""
        place, context = row["number"], None
        if row["context"] is not None:
            flat = unpacked(self._secrecy.open(row["context"], f"context {place}"))
            context = flat.reshape(1, self.router.n_actions, -1)
        reward = self.router.missing_reward if row["reward"] is None else self._reward(row)
        entering = Entering(place, context, Decision(row["action"], unpacked(row["coins"])[None]), reward)
        self._ledger.arm, self._ledger.since = -1 if progress.named is None else row["action"], progress.since
        progress = rules.enter(self.deployed.algorithm, progress, entering, self._ledger, self._world.toss)
        kept_reward = self._secrecy.seal(packed(reward), f"reward {place}") if self.router.keeps_log else None
        session.update(RECORDS, place, entered=True, context=None, reward=kept_reward, person=None)
        return progress

    def _reward(self, row: Mapping[Any, Any]) -> float:
        return number(self._secrecy.open(row["reward"], f"reward {row['number']}"))

    def _loaded(self, session: Session, status: RowMapping) -> Progress:
        """The state of the store, from memory where no other process changed it, with the charges of all processes."""
        if self._ledger.n_charged < status["releases"]:
            self._ledger.charge(session.releases(self._ledger.n_charged))
        if self._progress is not None and self._progress.n_entered == status["entered"]:
            return self._progress
        blob = self._secrecy.open(session.state()["sensitive"], f"state {status['entered']}")
        return loaded(blob, status["released"], status["entered"])

    def _keep(self, session: Session, status: RowMapping, progress: Progress, n_asked: int, now: float) -> list[Released]:
        """Stores the state and the releases of this transaction."""
        made, released = list(self._ledger.made), status["released"]
        if progress.n_entered != status["entered"]:
            sensitive, released = kept(progress)
            session.update(STATES, sensitive=self._secrecy.seal(sensitive, f"state {progress.n_entered}"))
        for place, release in enumerate(made, start=status["releases"] + 1):
            session.insert(RELEASES, number=place, **self._row(release))
        session.update(
            POLICIES, asked=n_asked, entered=progress.n_entered, releases=status["releases"] + len(made), time=now,
            released=released,
        )  # fmt: skip
        return made

    def _row(self, release: Released) -> dict[str, object]:
        """Public columns of a release."""
        return release._asdict()

    def _forget(self) -> None:
        """Leaves nothing in memory of a transaction that was not stored; the store knows all that was."""
        self._progress, self._ledger = None, NotingLedger(self.deployed.ledger(self._world.noise), self._world.wrap)

    # --- telling -----------------------------------------------------------------------------------------------------

    def tell(self, id: str, reward: float, *, person: str | None = None) -> Told:
        """Stores the reward of a choice; it is on disk when this returns.

        Args:
          id: of the choice.
          reward: clipped to the declared range, and rounded to a multiple of 2^-30.
          person: whom the choice was bound to, where it was.

        Returns:
          `kept`; `duplicate` where an earlier reward counts; `late` where the record entered without one.

        Raises:
          ChoiceError: no such choice, another person's, or the reward is no number; nothing was stored.
          StoreError: the store cannot be used; the reward was not stored.
        """
        try:
            value = math.nan if isinstance(reward, bool | str) else float(reward)
        except (TypeError, ValueError):
            value = math.nan
        if math.isnan(value):
            raise ChoiceError(f"reward: must be a number, got {shown(reward)}; nothing was stored")
        low, high = self.router.reward_range
        # On a grid of 2^-30, sums of rewards are exact in floating point, as secure noise takes them to be.
        value = min(max(math.floor(min(max(value, low), high) * _GRID + 0.5) / _GRID, low), high)
        with self.store.session() as session:
            self._status(session)
            row = session.record(hashed(str(id)))
            if row is None:
                raise ChoiceError(f"id: no choice has the id {shown(id)}; nothing was stored")
            if row["person"] != (None if person is None else hashed(person, self._salt)) and not row["entered"]:
                raise ChoiceError("person: the choice is another person's; nothing was stored")
            fate = self._accept(session, row, value)
        self._world.publish({"event": "tell", "number": row["number"]})
        return fate

    def _accept(self, session: Session, row: RowMapping, value: float) -> Told:
        """Keeps the first reward of a record that has not entered."""
        if row["entered"]:
            return "late"
        if row["reward"] is not None:
            return "duplicate"
        session.update(RECORDS, row["number"], reward=self._secrecy.seal(packed(value), f"reward {row['number']}"))
        return "kept"

    # --- looking -----------------------------------------------------------------------------------------------------

    def privacy(self) -> Privacy:
        """Privacy that is claimed, accounted for the releases so far, and left in the book."""
        with self.store.session() as session:
            status = self._status(session)
            self._loaded(session, status)
            derived = self._ledger.ledger.guarantee()
        left = None if self.router.book is None else StreamBook(self.router).left
        accounted = "nothing was released" if derived is None else str(derived)
        claim = self.deployed.claim
        return Privacy(
            f"{claim.stated}, {claim.relation.value}, {claim.trust}", accounted, left, status["releases"],
            self._ledger.ledger.noise.name,
        )  # fmt: skip

    def counts(self) -> dict[str, int]:
        """Public counts: `asked`, `entered`, `releases`."""
        with self.store.session() as session:
            status = self._status(session)
        return {name: status[name] for name in ("asked", "entered", "releases")}

    def releases(self) -> list[dict[str, object]]:
        """Rows of everything that was released, in order; they may be read by anybody."""
        with self.store.session() as session:
            self._status(session)
            return [{**row, "policy": self.store.policy} for row in session.releases()]

    def evidence(self) -> dict[str, object]:
        """Document for an auditor: settings, claim, and every release with its cost; it holds no context and no reward."""
        privacy, rows = self.privacy(), self.releases()
        return {
            "format": f"bandana/live/{FORMAT}", "identity": self._identity, "settings": self.router.public(),
            "entry": self.deployed.entry.label, "calibration": self.deployed.settings.calibration,
            "claimed": privacy.claimed, "accounted": privacy.accounted, "noise": privacy.noise, **self.counts(),
            "rules": f"{rules.__name__}", "list": rows,
        }  # fmt: skip

    def snapshot(self, path: str | Path) -> int:
        """Writes a copy of the policy to a new file, readable by its owner alone; it is as sensitive as the store.

        Returns:
          number of the last release in it: `restore` refuses the copy once there was a later one.

        Raises:
          StoreError: the file exists, or cannot be written.
        """
        with self.store.session() as session:
            status, rows = self._status(session), session.everything()
        text = json.dumps({"format": FORMAT, "rows": rows}, default=lambda blob: {"base64": _text(blob)})
        _write_new(path, text, "snapshot")
        return int(status["releases"])

    def write_log(self, path: str | Path) -> int:
        """Writes action and reward of every record that has entered to a new file, for `kind: live-log`.

        The file is readable by its owner alone, and as sensitive as the store; no release moves by it.

        Returns:
          number of records in it.

        Raises:
          ChoiceError: the policy was opened without `keeps_log`: rewards were erased as they entered.
          StoreError: the file exists, or cannot be written.
        """
        if not self.router.keeps_log:
            raise ChoiceError("keeps_log: rewards were erased as they entered; open a policy with keeps_log=True")
        with self.store.session() as session:
            status, rows = self._status(session), session.everything()[RECORDS.name]
        entered = sorted((row for row in rows if row["entered"]), key=lambda row: int(str(row["number"])))
        log = {
            "format": logs.FORMAT, "identity": status["identity"], "n_actions": self.router.n_actions,
            "reward_range": self.router.reward_range,
            "actions": [row["action"] for row in entered], "rewards": [self._reward(row) for row in entered],
        }  # fmt: skip
        _write_new(path, json.dumps(log), "log")
        return len(entered)


def _write_new(path: str | Path, text: str, what: str) -> None:
    """Writes a new file, readable by its owner alone; it is on disk when this returns."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise StoreError(f"{what} {path}: {error.strerror}; the policy is as it was") from error


def _text(blob: object) -> str:
    return base64.b64encode(bytes(blob)).decode()  # type: ignore[call-overload]


def kept(progress: Progress) -> tuple[bytes, bytes]:
    """The sensitive and the public part of a state, as bytes."""
    named = (None, None) if progress.named is None else progress.named
    return encode((progress.sensitive,)), encode((progress.released, *named, progress.since))


def loaded(sensitive: bytes, public: bytes, n_entered: int) -> Progress:
    """The state that `kept` wrote."""
    (exact,) = decode(sensitive)
    released, arm, coins, since = decode(public)
    named = None if arm is None else Decision(int(str(arm)), np.asarray(coins))
    return Progress(exact, released, named, int(str(since)), n_entered)
