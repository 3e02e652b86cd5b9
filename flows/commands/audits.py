"""The command audit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bandana.flows.commands.agreement import ask
from bandana.flows.commands.failures import failures
from bandana.flows.commands.options import (
    FAILURE,
    Anonymous,
    AsJson,
    Debug,
    DryRun,
    ExecutorName,
    Workers,
    Yes,
    echo,
    echo_files,
    open_data,
    option,
    real_option,
    whole,
)
from bandana.flows.commands.suites import begin, for_machines, resources_of, run_file, while_the_server_starts

if TYPE_CHECKING:
    from bandana.flows.running.executors import Resources

_OF_AN_AUDIT = ("claim", "relation", "trust", "replays", "rounds", "arms", "confidence", "delta", "examples", "seed", "low",
                "high")  # fmt: skip
_OF_A_RELEASE = ("claim", "pair", "users", "replays", "confidence", "seed", "seconds", "timeout", "memory")


def audit(
    context: typer.Context,
    spec: Annotated[Path | None, typer.Argument(help="The experiment, a YAML file.", show_default=False)] = None,
    algorithm: Annotated[
        str | None, option("Your own, FILE.py:NAME: an algorithm, or a function (rewards, seed) -> actions.")
    ] = None,
    mechanism: Annotated[
        str | None,
        option(
            "Any release: FILE.py:NAME, a function (data, seed) -> numbers, labels or text; or exec:COMMAND, tcp:HOST:PORT."
        ),
    ] = None,
    neighbor: Annotated[
        str | None, option("With --mechanism: the neighbor of --data, a file (.npy, .csv, .json) or a Python literal.")
    ] = None,
    samples: Annotated[
        tuple[Path, Path] | None, option("Two files with outputs of any release on a data set and on its neighbor.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="The whole catalog and every building block.")] = False,
    only: Annotated[
        list[str] | None,
        option("With --all: a label, its first words, or a pattern such as '*pure*'; give it several times."),
    ] = None,
    pair: Annotated[
        tuple[str, str] | None,
        option("The two data sets that the claim is about, files or literals; also pair=(A, B) in it."),
    ] = None,
    users: Annotated[
        str | None,
        option("With relation=user: whose each record or round is, a file or a Python list; or how many rounds a user has."),
    ] = None,
    claim: Annotated[str | None, option("What it promises, such as gdp(mu=1, relation=reward).")] = None,
    relation: Annotated[
        str | None, option("Neighboring relation, if the claim names none: reward, record, trajectory or user.")
    ] = None,
    trust: Annotated[str | None, option("Trust model, if the claim names none: central, joint, shuffle or local.")] = None,
    replays: Annotated[int | None, option("Replays on each side; 20000.", parser=whole)] = None,
    rounds: Annotated[int | None, option("Rounds of each replay; 32.", parser=whole)] = None,
    arms: Annotated[int | None, option("Number of arms; 2, or as the algorithm says.", parser=whole)] = None,
    confidence: Annotated[float | None, real_option("Joint confidence level of all bounds; 0.95.")] = None,
    delta: Annotated[float | None, real_option("Delta at which epsilon is stated; the claim's, or 1e-5.")] = None,
    examples: Annotated[int | None, option("Cases tried by the deterministic audit; 100.", parser=whole)] = None,
    seed: Annotated[int | None, option("Root of all seeds; 0.", parser=whole)] = None,
    probe: Annotated[list[int] | None, option("A record to plant a canary at; give it several times.", parser=whole)] = None,
    low: Annotated[float | None, real_option("Lower end of the rewards that a function is given; 0.")] = None,
    high: Annotated[float | None, real_option("Upper end of those rewards; 1.")] = None,
    seconds: Annotated[
        float | None, real_option("Time for runs of own code: 60 with --mechanism, 3600 with --algorithm.")
    ] = None,
    timeout: Annotated[float | None, real_option("Seconds for one call of own code; 120.")] = None,
    memory: Annotated[float | None, real_option("Gigabytes for own code; three quarters of this machine's.")] = None,
    executor: ExecutorName = None,
    workers: Workers = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    anonymous: Anonymous = False,
    as_json: AsJson = False,
    data_option: Annotated[
        str | None, typer.Option("--data", help="Data folder; with --mechanism the data set, as for --neighbor.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Audit a spec's private algorithms, the whole catalog, your own algorithm, any release, or samples of one."""
    with failures(debug):
        from bandana.flows.spec.mistakes import SpecError

        given = {name: context.params[name] for name in _OF_AN_AUDIT if context.params[name] is not None}
        given |= {"probes": tuple(probe)} if probe else {}
        given |= {"pair": pair} if pair is not None else {}
        given |= {"users": users} if users is not None else {}
        if sum((spec is not None, algorithm is not None, mechanism is not None, samples is not None, all_)) != 1:
            raise SpecError(
                "audit one of: a SPEC, the whole catalog with --all, your own with --algorithm FILE.py:NAME, any release "
                "with --mechanism FILE.py:NAME, or its outputs with --samples P.npy Q.npy"
            )
        if mechanism is not None or samples is not None:
            found = given | {name: context.params[name] for name in _OF_A_RELEASE if context.params[name] is not None}
            _audit_release(found, mechanism, data_option, neighbor, samples, as_json=as_json)
            return
        if neighbor is not None:
            raise SpecError("--neighbor: only with --mechanism")
        data = None if data_option is None else Path(data_option)
        if only and not all_:
            raise SpecError("--only: only with --all")
        resources = resources_of(executor, workers)
        if dry_run and spec is None:
            raise SpecError("--dry-run: only with a SPEC")
        if all_:
            _audit_all(only or [], given, data, resources, is_agreed=yes, as_json=as_json)
            return
        if spec is not None:
            if given:
                names = ", ".join("--probe" if name == "probes" else f"--{name}" for name in given)
                raise SpecError(f"{names}: only with --algorithm; a spec has its own field `audit`")
            steps = ["audit", "report"]
            run_file(spec, data, steps, resources, dry_run=dry_run, is_agreed=yes, as_json=as_json)
            return
        if executor is not None or workers is not None:
            raise SpecError("--executor, --workers: not with --algorithm, which audits in this process")
        if claim is None:
            raise SpecError('--algorithm needs --claim, such as --claim "gdp(mu=1, relation=reward)"')
        more = {} if seconds is None else {"seconds": seconds}
        _audit_own({"algorithm": algorithm, **given, **more}, timeout, memory, data, as_json=as_json)


def _audit_release(
    given: dict[str, Any],
    mechanism: str | None,
    data: str | None,
    neighbor: str | None,
    samples: tuple[Path, Path] | None,
    *,
    as_json: bool,
) -> None:
    """Audits one release on one pair of data sets, or samples of it."""
    from bandana.flows.spec.mistakes import SpecError
    from bandana.flows.suites.releases import ReleaseRequest, audit_release, write_release

    asked = "--mechanism" if samples is None else "--samples"
    if wrong := [name for name in given if name not in _OF_A_RELEASE]:
        raise SpecError(f"{', '.join('--probe' if name == 'probes' else f'--{name}' for name in wrong)}: not with {asked}")
    if "claim" not in given:
        raise SpecError(f'{asked} needs --claim, such as --claim "approx(epsilon=1, delta=1e-5)"')
    if samples is not None:
        if data is not None or neighbor is not None:
            raise SpecError("--data, --neighbor: not with --samples, which holds the outputs of both")
        request = ReleaseRequest(samples=samples, **given)
    else:
        request = ReleaseRequest(mechanism=str(mechanism), data=data or "", neighbor=neighbor or "", **given)
    folder = open_data(None).root / "own"
    audited = audit_release(request)
    files = write_release(audited, request, folder)
    if audited.note:
        typer.echo(f"note: {audited.note}", err=True)
    if as_json:
        entry = audited.outcome.entry(audited.label) | {"files": {kind: str(place) for kind, place in files.items()}}
        typer.echo(json.dumps(entry, indent=1, allow_nan=False))
    else:
        echo(*audited.outcome.lines(audited.label))
        _say_files(files)
    if audited.outcome.verdict != "NOT REFUTED":
        raise typer.Exit(FAILURE)


def _audit_own(
    asked: dict[str, Any], timeout: float | None, memory: float | None, data: Path | None, *, as_json: bool
) -> None:
    """Audits one file of the user's in a child process, and says where the evidence lies."""
    from bandana.flows.running import child
    from bandana.flows.suites.audit_report import tell, write_document
    from bandana.flows.suites.own import Request, audit_own, write_evidence

    request, folder = Request(**asked), open_data(data).root / "own"

    def work() -> tuple[str, str, list[str], Path, dict[str, Any]]:
        loaded, outcome = audit_own(request)
        told = tell(loaded.label, outcome)
        return outcome.verdict.value, loaded.label, told, *write_evidence(loaded, outcome, request, folder)

    name = Path(request.algorithm).name
    returned = child.run(work, child.limits(timeout, memory, request.seconds), f"--algorithm: {name}")
    verdict, label, lines, evidence, document = returned.value
    stem = evidence.with_name(evidence.name.removesuffix(".evidence.npz"))
    files = {"evidence": evidence, **write_document(document, stem)}
    if returned.printed:
        typer.echo(f"note: {name} {returned.printed}", err=True)
    if as_json:
        entries = json.loads(files["json"].read_text(encoding="utf-8"))["audits"]
        typer.echo(for_machines(label, entries, {kind: str(path) for kind, path in files.items()}))
    else:
        echo(*lines)
        _say_files(files)
    if verdict not in ("PASS", "NOT REFUTED"):
        raise typer.Exit(FAILURE)


def _say_files(files: dict[str, Path]) -> None:
    """Where the files lie, and what may be done with the evidence."""
    here = Path.cwd()
    shown = {kind: path.relative_to(here) if path.is_relative_to(here) else path for kind, path in files.items()}
    for kind, place in shown.items():
        typer.echo(f"{kind:<9} {place}")
    typer.echo(f"Anybody can recompute it:  bandana verify {shown['evidence']}")


def _audit_all(
    only: list[str], given: dict[str, Any], data: Path | None, resources: Resources, *, is_agreed: bool, as_json: bool
) -> None:
    """Audits the whole catalog, or some labels of it, and says where the report lies."""
    from bandana.audits.outcome import Effort
    from bandana.audits.subjects import selected
    from bandana.flows.queries.cost import seconds_of_audit
    from bandana.flows.spec.mistakes import SpecError

    known = {"replays": 100_000, "confidence": 0.95, "delta": 1e-5, "examples": 100, "seed": 0}
    if wrong := [f"--{'probe' if name == 'probes' else name}" for name in given if name not in known]:
        raise SpecError(f"{', '.join(wrong)}: not with --all, which takes {', '.join(f'--{name}' for name in known)}")
    try:
        effort = Effort(**{**known, **given})
    except ValueError as error:
        raise SpecError(f"--{error}") from error
    try:
        labels = selected(only)
    except ValueError as error:
        raise SpecError(f"--only: {error}") from error
    seconds = len(labels) * seconds_of_audit(effort.replays, effort.examples)
    ask("--all", [], None, resources, is_agreed=is_agreed, audit_seconds=seconds)
    folder = open_data(data)
    begin(folder)
    from bandana.flows.suites import gate
    from bandana.flows.suites.audit_all import SUITE, audit_all

    while_the_server_starts(folder)
    done = audit_all(labels, effort, str(folder.root), resources)
    entries = [found["entry"] for found in done["audits"].values()]
    verdicts = [entry["verdict"] for entry in entries]
    if as_json:
        typer.echo(for_machines(SUITE, entries, done["files"], done["gate"], done["alarm"]))
    else:
        echo(*(line for found in done["audits"].values() for line in found["lines"]), *gate.lines(done["gate"]))
        echo_files(done["files"])
        typer.echo(", ".join(f"{verdicts.count(v)} {v}" for v in ("PASS", "FAIL", "INCONCLUSIVE")))
    if done["alarm"] is not None:
        raise typer.Exit(FAILURE)
