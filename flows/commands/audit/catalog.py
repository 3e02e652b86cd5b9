"""The audit of the whole catalog, or of some labels of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bandana.flows.commands.agreement import ask
from bandana.flows.commands.audit.options import Running, as_typed
from bandana.flows.commands.options import FAILURE, echo, echo_files, open_data
from bandana.flows.commands.suites import begin, for_machines, while_the_server_starts

if TYPE_CHECKING:
    from bandana.flows.running.executors import Resources

_DEFAULTS = {"replays": 100_000, "confidence": 0.95, "delta": 1e-5, "examples": 100, "seed": 0}


def audit(only: list[str], options: dict[str, Any], resources: Resources, how: Running) -> None:
    """Audits the labels that `only` chooses, all of them where it is empty, and writes where the report lies.

    Raises:
      SpecError: an option has no meaning here or an impossible value, or no label is chosen.
      Exit: an audit did not pass, or is worse than the baseline.
    """
    from bandana.audits.outcome import Effort
    from bandana.audits.subjects import selected
    from bandana.flows.queries.cost import seconds_of_audit
    from bandana.flows.texts.mistakes import SpecError

    if wrong := [name for name in options if name not in _DEFAULTS]:
        raise SpecError(f"{as_typed(wrong)}: not with --all, which takes {as_typed(_DEFAULTS)}")
    try:
        effort = Effort(**{**_DEFAULTS, **options})
    except ValueError as error:
        raise SpecError(f"--{error}") from error
    try:
        labels = selected(only)
    except ValueError as error:
        raise SpecError(f"--only: {error}") from error
    seconds = len(labels) * seconds_of_audit(effort.replays, effort.examples)
    ask("--all", [], None, resources, is_agreed=how.yes, audit_seconds=seconds)
    folder = open_data(None if how.data is None else Path(how.data))
    begin(folder)
    from bandana.flows.results import gate
    from bandana.flows.suites.audit_all import SUITE, audit_all

    while_the_server_starts(folder)
    done = audit_all(labels, effort, str(folder.root), resources)
    audits = done["audits"].values()
    entries = [each["entry"] for each in audits]
    verdicts = [entry["verdict"] for entry in entries]
    if how.as_json:
        typer.echo(for_machines(SUITE, entries, done["files"], done["gate"], done["alarm"]))
    else:
        echo(*(line for each in audits for line in each["lines"]), *gate.lines(done["gate"]))
        echo_files(done["files"])
        typer.echo(", ".join(f"{verdicts.count(v)} {v}" for v in ("PASS", "FAIL", "INCONCLUSIVE")))
    if done["alarm"] is not None:
        raise typer.Exit(FAILURE)
