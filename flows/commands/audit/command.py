"""Commands that audit a spec and the whole catalog; and the form before 1.0, in which one command audited everything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from bandana.flows.commands.agreement import ask
from bandana.flows.commands.audit.options import Effort, Running, given
from bandana.flows.commands.failures import failures
from bandana.flows.commands.groups import grouped
from bandana.flows.commands.options import (
    FAILURE,
    Anonymous,
    AsJson,
    Data,
    Debug,
    Device,
    DryRun,
    ExecutorName,
    SpecPath,
    Workers,
    Yes,
    echo,
    echo_files,
    open_data,
    option,
)  # fmt: skip
from bandana.flows.commands.suites import begin, for_machines, read, resources_of, run_spec, while_the_server_starts

_NOW = {"--algorithm": "audit-own", "--mechanism": "audit-release", "--samples": "audit-release", "--all": "audit-catalog"}
"""Option that said what `bandana audit` audits -> the command of today."""


def audit(
    spec: SpecPath,
    executor: ExecutorName = None,
    workers: Workers = None,
    device: Device = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    anonymous: Anonymous = False,
    as_json: AsJson = False,
    data: Data = None,
    debug: Debug = False,
) -> None:
    """Audit a spec's private algorithms; see also audit-own, audit-release and audit-catalog."""
    with failures(debug):
        how = resources_of(executor, workers)
        run_spec(read(spec), data, ["audit", "report"], how, dry_run=dry_run, is_agreed=yes, as_json=as_json)


def renamed(words: Sequence[str]) -> list[str]:
    """Words of the command line, where the form before 1.0 becomes that of today, which a note on standard error says."""
    command, *rest = words or [""]
    for old, now in _NOW.items() if command == "audit" else ():
        if at := next((n for n, word in enumerate(rest, 1) if word.partition("=")[0] == old), 0):
            typer.echo(f"note: `bandana audit {old}` is now `bandana {now}`; the old form works until 2.0", err=True)
            _, is_joined, value = rest[at - 1].partition("=")
            kept = [old] if old == "--samples" else [value] if is_joined else []
            return [now, *rest[: at - 1], *kept, *rest[at:]]
    return list(words)


@dataclass(frozen=True)
class Labels:
    """Labels of the catalog."""

    only: Annotated[
        list[str] | None, option("A label, its first words, or a pattern such as '*pure*'; give it several times.")
    ] = None


@grouped
def audit_catalog(labels: Labels, effort: Effort, how: Running) -> None:
    """Audit every algorithm of the catalog and every building block, or those that --only names."""
    with failures(how.debug):
        _audit(labels.only or [], effort, how)


def _audit(only: list[str], asked_effort: Effort, how: Running) -> None:
    """Audits the labels that `only` chooses, all of them where it is empty, and writes where the report lies.

    Raises:
      SpecError: an option has an impossible value, or no label is chosen.
      Exit: an audit did not pass, or is worse than the baseline.
    """
    from bandana.audits.subjects import EFFORT, selected
    from bandana.flows.queries.cost import seconds_of_audit
    from bandana.flows.texts.mistakes import SpecError

    resources = resources_of(how.executor, how.workers)
    try:
        effort = replace(EFFORT, **given(asked_effort))
    except ValueError as error:
        raise SpecError(f"--{error}") from error
    try:
        labels = selected(only)
    except ValueError as error:
        raise SpecError(f"--only: {error}") from error
    seconds = len(labels) * seconds_of_audit(effort.replays, effort.examples)
    ask("audit-catalog", [], None, resources, is_agreed=how.yes, audit_seconds=seconds)
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
