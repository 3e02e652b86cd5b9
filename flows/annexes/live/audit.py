"""The deterministic audit of a live policy: its own code, store, deadlines and processes on neighboring feedback.

A script is played on D: persons are asked for at stated times, answer late, twice or never, two processes take turns, some
die before and after a commit, and the store is lost and restored. Then one person gives something else, D', and the
same code plays the same script with a ledger that answers with the noisy outputs of the first run. All that others see must
be equal to the last bit: ids, actions, public rows, log lines, the schedule of releases. Exact values may move by a
mechanism's sensitivity where the release reads the person, and not at all elsewhere. Every noisy output that was seen, also
of a transaction that was lost, is charged to a ledger with the claim as its budget, and must be a row of the store when the
script ends: rows alone are what the policy's ledger, its evidence and its book account for. A single violation refutes the
claim; every person and every way to answer is tried in turn.
"""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Unpack

import numpy as np
from sqlalchemy.engine import RowMapping

from bandana.algorithms.protocol import FloatArray
from bandana.flows.annexes.live.api import create, restore
from bandana.flows.annexes.live.ledgers import NotingLedger
from bandana.flows.annexes.live.policy import Choice, ChoiceError, Policy, World
from bandana.flows.annexes.live.router import Deployed, Router, deploy, invented_context, of_settings
from bandana.flows.annexes.live.rules import Progress
from bandana.flows.annexes.live.secrecy import Secrecy
from bandana.flows.annexes.live.store import Session, Store, StoreError
from bandana.privacy_core import BudgetExceeded, LiveLedger, Mechanism, Relation, Release, ReproducibleNoise, ScriptedLedger
from bandana.privacy_core.ledger import Reads

_ROUNDING = 1 + 1e-9
_MOST_WAIT, _TURNS, _FEW, _SAVED = 3, 2, 2, 2
PERSONS = 26
"""Length of a script."""
Answers = tuple[tuple[float, float], ...]
"""Rewards of one person: (delay in deadlines, reward) of each `tell`."""


class Subject(NamedTuple):
    """Code under audit: the product's, or one with a planted fault."""

    policy: type[Policy] = Policy
    restore: Callable[..., None] = restore


class Person(NamedTuple):
    """One person of a script."""

    context: int
    """Number of the invented context."""
    answers: Answers


class _Crash(BaseException):
    """The process dies."""


@dataclass
class Tape:
    """Record of one run: releases with their exact values, and all that others saw.

    Attributes:
      script: ledger that answers with the outputs of another run; None: noise is drawn.
      hidden: person whose own view is left out.
    """

    script: ScriptedLedger | None = None
    hidden: int = -1
    releases: list[Release] = field(default_factory=list)
    view: list[str] = field(default_factory=list)
    shown: dict[str, Mapping[str, object]] = field(default_factory=dict)
    """Every noisy output that was seen, once, with its cost."""
    stored: list[str] = field(default_factory=list)
    """Those that the store holds when the script ends."""
    order: dict[int, int] = field(default_factory=dict)
    """Place in the algorithm's stream -> person; a transaction that is lost may have had another order."""
    readers: list[dict[int, int]] = field(default_factory=list)
    """The order at each release."""

    def see(self, what: str, item: object) -> None:
        """Notes what others see."""
        self.view.append(f"{what}: {json.dumps(item, default=repr)}")

    def show(self, row: Mapping[str, object]) -> None:
        """Notes a noisy output that somebody saw."""
        self.shown.setdefault(_named(row), row)


def _named(row: Mapping[str, object]) -> str:
    return json.dumps([row[name] for name in ("mechanism", "start", "stop", "output")])


class _Door:
    """A live ledger that keeps exact values, or answers from a script."""

    def __init__(self, ledger: LiveLedger, tape: Tape) -> None:
        self._ledger, self._tape, self.n_reps = ledger, tape, 1

    def release(self, mechanism: Mechanism, value: FloatArray, **reads: Unpack[Reads]) -> FloatArray:
        """Releases through the ledger, which refuses first."""
        exact = value.copy()
        output = self._ledger.release(mechanism, value, **reads)
        if self._tape.script is not None:
            return self._tape.script.release(mechanism, exact, **reads)
        kept = Release(mechanism, reads["records"], None, exact, output.copy(), reads.get("carried"))
        self._tape.releases.append(kept)
        self._tape.readers.append({**self._tape.order})
        return output


def play(subject: Subject, deployed: Deployed, persons: list[Person], tape: Tape) -> None:
    """Plays a script; every third ask dies once before its commit, every fifth after it, and the store is lost once."""
    unit, now, dying = deployed.router.deadline or 1.0, [0.0], [""]
    tokens, coins, telling = itertools.count(), np.random.default_rng(1), [-1]
    who = dict[int, int]()  # number in the store -> person; they part once a store is restored

    def reached(point: str) -> None:
        if point == dying[0]:
            dying[0] = ""
            raise _Crash

    def publish(line: Mapping[str, object]) -> None:
        if "output" in line:
            tape.show(line)
        if line["event"] != "tell" or telling[0] != tape.hidden:
            tape.see("log", line)

    class Watched(subject.policy):  # type: ignore[name-defined,misc]
        def _entered(self, session: Session, progress: Progress, row: RowMapping) -> Progress:
            tape.order[progress.n_entered] = who[row["number"]]
            return super()._entered(session, progress, row)  # type: ignore[no-any-return]

    world = World(
        clock=lambda: now[0], token=lambda: f"{next(tokens):032x}", toss=lambda n: coins.random((1, n)),
        noise=ReproducibleNoise(np.random.SeedSequence(2)), wrap=lambda ledger: _Door(ledger, tape), publish=publish,
        reached=reached,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        stores = [Store(f"{folder}/{place}.db", is_durable=False) for place in range(_TURNS)]
        create(deployed, stores[0], Secrecy(None), world)

        def process(store: Store) -> Policy:
            return Watched(deployed, store, Secrecy(None), world)

        store, policies, choices = stores[0], [process(stores[0]) for _ in range(_TURNS)], dict[int, Choice]()
        n_stored = 0
        for turn, (time, number, answer) in enumerate(_events(persons, unit)):
            now[0] = time
            place = turn % _TURNS
            if answer is not None:
                if number in choices:
                    telling[0] = number
                    try:
                        fate: str = policies[place].tell(choices[number].id, answer)
                    except ChoiceError as error:  # its ask was lost with the store
                        fate = str(error)
                    if number != tape.hidden:
                        tape.see("told", [number, fate])
                continue
            who[n_stored] = number
            dying[0] = "drawn" if number % 3 == 2 else "committed" if number % 5 == 4 else ""
            context = invented_context(deployed.router, persons[number].context)
            given = None if context is None else context[0]
            try:
                choices[number] = policies[place].ask(given)
            except _Crash:
                policies[place] = process(store)
                if policies[place].counts()["asked"] == n_stored:  # the person asks again
                    choices[number] = policies[place].ask(given)
            n_stored += 1
            _look(policies[place], tape, number, choices.get(number))
            if number == _SAVED:
                policies[place].snapshot(f"{folder}/snapshot")
            if number == 2 * len(persons) // 3 and _is_restored(subject, policies[place], stores[1], folder):
                store = stores[1]
                policies = [process(store) for _ in range(_TURNS)]
                n_stored = policies[0].counts()["asked"]
        tape.stored = [_named(row) for row in policies[0].releases()]


def _events(persons: list[Person], unit: float) -> list[tuple[float, int, float | None]]:
    """(seconds, person, reward) in order of time; no reward: the person is asked for."""
    asks: list[tuple[float, int, float | None]] = [(place * unit / 4, place, None) for place in range(len(persons))]
    tells = [
        (place * unit / 4 + delay * unit, place, reward)
        for place, person in enumerate(persons)
        for delay, reward in person.answers
    ]
    return sorted([*asks, *tells], key=lambda event: event[0])


def _is_restored(subject: Subject, policy: Policy, spare: Store, folder: str) -> bool:
    try:
        subject.restore(spare.address, f"{folder}/snapshot", last_release=policy.counts()["releases"])
    except StoreError:
        return False
    return True


def _look(policy: Policy, tape: Tape, number: int, choice: Choice | None) -> None:
    """Notes everything that anybody may read after an ask."""
    with policy.store.session() as session:
        status, rows = session.status(), session.releases()
    assert status is not None
    tape.see("public", {name: part for name, part in status.items() if name not in ("identity", "settings")})
    for row in rows:
        tape.show(row)
    tape.see("rows", [dict(row) for row in rows])
    # A person's own action depends on the own context, and joint privacy does not protect a person from itself.
    if choice is not None and (number != tape.hidden or policy.deployed.claim.relation is Relation.REPLACE_REWARD):
        tape.see("choice", [number, choice.id, choice.action])


def persons_of(router: Router, n_most: int) -> list[Person]:
    """The script's persons: they answer at once, late, twice, after the deadline, or never."""
    low, high = router.reward_range
    ways: tuple[Answers, ...] = (
        ((0.1, high),), ((0.9, low),), ((0.3, low), (0.6, low)), (), ((0.5, high),), ((1.6, high),),
        ((0.7, (low + high) / 2),),
    )  # fmt: skip
    n_persons = min(n_most, router.n_asks or n_most)
    return [Person(place, ways[place % len(ways)]) for place in range(n_persons)]


def neighbors(router: Router, person: Person) -> Iterator[Person]:
    """Everything else that a person may give: values alone under `arrival`, and times, silence and contexts besides."""
    low, high = router.reward_range
    for reward in (low, high, high + 10):
        answers = tuple((delay, reward) for delay, _ in person.answers)
        if answers != person.answers:
            yield person._replace(answers=answers)
    if router.enters == "arrival":
        return
    for other in ((), ((0.2, high),), ((0.8, high),), ((0.4, high), (0.5, high), (0.6, high)), ((2.5, high),)):
        if other != person.answers:
            yield person._replace(answers=other)
    if router.is_contextual and "record" in router.claim:
        yield Person(person.context + 1000, ((0.2, high),))


def first_violation(subject: Subject, deployed: Deployed, n_persons: int = PERSONS) -> tuple[str, int]:
    """Searches for a run that refutes the claim.

    Returns:
      what was violated, empty if nothing was; and how many pairs of data sets were played.
    """
    persons, data = persons_of(deployed.router, n_persons), Tape()
    try:
        play(subject, deployed, persons, data)
        _charge(deployed, data)
    except (BudgetExceeded, ValueError) as error:  # a row of a factorized sum that was seen twice breaks its sequence
        return f"noisy outputs that were seen compose to more than the claim: {error}", 0
    if lost := [row for name, row in data.shown.items() if name not in data.stored]:
        return f"{len(lost)} noisy outputs that were seen are not accounted for, first {_named(lost[0])}", 0
    played = 0
    for changed, person in enumerate(persons):
        own = _hiding(data, changed, subject, deployed, persons)
        for other in neighbors(deployed.router, person):
            played += 1
            tape = Tape(ScriptedLedger(1, data.releases, keeps_values=True), changed)
            try:
                play(subject, deployed, [*persons[:changed], other, *persons[changed + 1 :]], tape)
            except BudgetExceeded as error:
                return f"person {changed} makes the ledger refuse: {error}", played
            if violation := _compared(own, tape, changed):
                return f"person {changed} gives {other.answers} in place of {person.answers}: {violation}", played
    return "", played


def _hiding(data: Tape, changed: int, subject: Subject, deployed: Deployed, persons: list[Person]) -> Tape:
    """The run on D again, as everybody but one person saw it."""
    tape = Tape(ScriptedLedger(1, data.releases, keeps_values=True), changed)
    play(subject, deployed, persons, tape)
    tape.releases, tape.readers = data.releases, data.readers
    return tape


def _charge(deployed: Deployed, tape: Tape) -> None:
    """Charges every output that was seen to one ledger, with the claim as its budget."""
    NotingLedger(deployed.ledger()).charge(tape.shown.values())


def _compared(data: Tape, neighbor: Tape, changed: int) -> str:
    assert neighbor.script is not None
    neighbor.script.finish()
    if neighbor.script.diverged[0] >= 0:
        return f"release {neighbor.script.diverged[0]} has another schedule, although all earlier outputs are equal"
    for mine, theirs in itertools.zip_longest(data.view, neighbor.view, fillvalue="nothing"):
        if mine != theirs:
            place = next((at for at, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b), 0)
            start = max(0, place - 40)
            return f"others see ...{mine[start : place + 40]} on D, ...{theirs[start : place + 40]} on D'"
    for index, (release, value) in enumerate(zip(data.releases, neighbor.script.values, strict=True)):
        moved = float(release.mechanism.change(release.value, value)[0])
        places = [place for place, person in data.readers[index].items() if person == changed]
        n_reads = sum(int(release.reads(place)[0]) for place in places)
        if not moved <= release.mechanism.sensitivity * min(n_reads, 1) * _ROUNDING + 1e-9:
            allowed = release.mechanism.sensitivity if n_reads else 0.0
            return f"release {index} moves by {moved:.6g}, allowed are {allowed:.6g}"
    return ""


def eventful(deployed: Deployed, n_persons: int) -> tuple[Deployed, tuple[str, ...]]:
    """The same if a script holds several releases; else at the short horizon and batches of the catalog's audits.

    Claim and code are the same; see `Entry.in_audit`.

    Args:
      deployed: at the user's parameters.
      n_persons: length of the script.

    Returns:
      what is audited; and a caveat where its parameters are not the user's.
    """
    tape, settings = Tape(), deployed.settings
    play(Subject(), deployed, persons_of(deployed.router, n_persons), tape)
    if len(tape.releases) >= _FEW:
        return deployed, ()
    short = replace(settings, problem=replace(settings.problem, horizon=2 * n_persons // 3))
    chosen = deployed.entry.in_audit(short)
    other = {name: value for name, value in chosen.parameters.items() if value != settings.parameters[name]}
    words = ", ".join(f"{name} {value}" for name, value in {"horizon": chosen.problem.horizon, **other}.items())
    note = f"{len(tape.releases)} releases lie in so short a script, so it is played at {words}"
    return of_settings(deployed.router, deployed.entry, chosen), (note,)


class LiveVerdict(NamedTuple):
    """Outcome of the audit."""

    verdict: str
    """PASS, FAIL, or INCONCLUSIVE where a planted fault was missed."""
    violation: str
    n_pairs: int
    faults: dict[str, str]
    """Planted fault -> how it was caught; empty where it was missed."""
    caveats: tuple[str, ...]


def audit(router: Router, faults: Mapping[str, Subject], n_persons: int = PERSONS) -> LiveVerdict:
    """Audits a live policy of these settings, in a store of its own; no book is charged.

    Args:
      router: the settings; `wait` is cut to 3, so that records enter within the script.
      faults: planted faults that the same search must catch.
      n_persons: most persons of the script.

    Raises:
      SpecError: the settings are wrong, or the algorithm cannot be deployed.
    """
    noise = "noise is not sampled here, as `bandana audit-catalog` does"
    caveats: tuple[str, ...] = (f"{len(persons_of(router, n_persons))} persons; {noise}",)
    if router.wait > _MOST_WAIT:
        caveats += (f"wait was cut from {router.wait} to {_MOST_WAIT}",)
    deployed = deploy(router.model_copy(update={"wait": min(router.wait, _MOST_WAIT), "book": None, "budget": None}))
    deployed, changed = eventful(deployed, n_persons)
    caveats += changed
    violation, n_pairs = first_violation(Subject(), deployed, n_persons)
    planted = {} if violation else faults
    caught = {name: first_violation(subject, deployed, n_persons)[0] for name, subject in planted.items()}
    verdict = "FAIL" if violation else "PASS" if all(caught.values()) else "INCONCLUSIVE"
    return LiveVerdict(verdict, violation, n_pairs, caught, caveats)

