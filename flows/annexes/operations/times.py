"""Where the time of a suite's last command went, by the suite's journal: playing, auditing, and everything else."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from bandana.flows.commands.failures import failures
from bandana.flows.commands.options import AsJson, Data, Debug, console, echo
from bandana.flows.folder.settings import DataFolder, data_root
from bandana.flows.texts.json_text import JsonObject

_STARTED, _DONE = "command started", "command done"
_STEPS = ("benchmark started", "audit started")
_WORK = {"block done": "playing", "audit done": "auditing"}
_UNKNOWN = "the journal does not say when the command began and ended: seconds count from its first event to its last"
_OPEN = "the command was interrupted or is still running: seconds count to its last event"


def shares(begun: float, ended: float, journal: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Seconds of a command by what was done in them; those in which nothing was played or audited by what came before.

    A moment counts as work while any worker plays or audits; what is left is the interpreter, the plan, Prefect's server,
    tracking and the report.

    Args:
      begun: when the command began, in seconds since 1970.
      ended: when it ended.
      journal: events of the suite, with `time`, and `seconds` where something was worked on until then.
    """
    done = [(_at(event), event["seconds"], _WORK[event["event"]]) for event in journal if event["event"] in _WORK]
    measured = dict.fromkeys(("before the first block", *_WORK.values(), "between", "after the last one"), 0.0)
    if not done:
        return measured | {"before the first block": ended - begun}
    last = begun
    for start, stop, what in sorted((at - seconds, at, what) for at, seconds, what in done):
        idle = max(0.0, start - last)
        measured["before the first block" if last == begun else "between"] += idle
        measured[what] += max(0.0, stop - max(last, start))
        last = max(last, stop)
    return measured | {"after the last one": max(0.0, ended - last)}


def other_share(measured: Mapping[str, float]) -> float:
    """Percent of the time in which nothing was played or audited."""
    whole = sum(measured.values())
    return 100 * (1 - sum(measured[what] for what in _WORK.values()) / whole) if whole else 0.0


def last_command(journal: Iterable[JsonObject]) -> list[JsonObject]:
    """Events of the last command in a journal; one begins where it says so, or where a step cannot be of the one before."""
    events: list[JsonObject] = []
    names: set[str] = set()
    for event in journal:
        name = event["event"]
        if name == _STARTED or (name in _STEPS and not names.isdisjoint({name, _DONE})):
            events, names = [], set()
        events.append(event)
        names.add(name)
    return events


def explained(events: Sequence[JsonObject]) -> JsonObject:
    """Returns when a command began and ended, None where its events do not say, its seconds, and what is not known."""
    is_known, is_done = events[0]["event"] == _STARTED, events[-1]["event"] == _DONE
    began = events[0]["began"] if is_known else None
    measured = shares(_at(events[0]) if began is None else began, _at(events[-1]), events)
    return {
        "steps": events[0].get("steps"),
        "began": began and datetime.fromtimestamp(began, UTC).isoformat(timespec="seconds"),
        "ended": events[-1]["time"] if is_done else None,
        "seconds": measured,
        "percent_beside": other_share(measured),
        "notes": [] if is_done else [_OPEN if is_known else _UNKNOWN],
    }


def explain_time(
    suite: Annotated[str, typer.Argument(help="The suite, by the name in its spec.", show_default=False)],
    as_json: AsJson = False,
    data: Data = None,
    debug: Debug = False,
) -> None:
    """Show where the time of a suite's last command went: playing, auditing, and everything else."""
    with failures(debug):
        from rich.table import Column, Table

        from bandana.flows.folder.journal import Journal
        from bandana.flows.texts.mistakes import SpecError

        folder = DataFolder(data_root(data))
        events = last_command(Journal(folder.journal(suite)).read())
        if not events:
            known = sorted(place.parent.name for place in folder.root.glob("suites/*/log.jsonl"))
            there = f"it has: {', '.join(known)}" if known else "it has none yet; run a spec first"
            raise SpecError(f"{folder.root} has no journal of a suite {suite!r}; {there}")
        facts = explained(events)
        if as_json:
            typer.echo(json.dumps({"suite": suite, **facts}, indent=1))
            return
        whole = sum(facts["seconds"].values())
        table = Table("part", Column("seconds", justify="right"), Column("share", justify="right"))
        for part, seconds in facts["seconds"].items():
            table.add_row(part, f"{seconds:.1f}", f"{seconds / (whole or 1.0):.0%}")
        echo(f"{', '.join(facts['steps'] or ['unknown steps'])}: {whole:.1f} s to {events[-1]['time']}")
        console(80).print(table)
        echo(f"{facts['percent_beside']:.1f} % beside playing and auditing", *(f"note: {each}" for each in facts["notes"]))


def _at(event: Mapping[str, Any]) -> float:
    """When an event was, in seconds since 1970."""
    return datetime.fromisoformat(event["time"]).timestamp()
