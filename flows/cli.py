"""The command `bandana`. Everything heavy is imported inside the commands, so that help answers at once."""

from __future__ import annotations

import errno
import json
import os
import sys
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.settings import DataFolder

if TYPE_CHECKING:
    from flows.specs import Spec

USER_MISTAKE, FAILURE = 2, 1
_FULL = (errno.ENOSPC, errno.EDQUOT)

app = typer.Typer(
    help="Private bandits that prove their privacy: benchmarks, audits and reports.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)

SpecPath = Annotated[Path, typer.Argument(help="The experiment, a YAML file.", show_default=False)]
Data = Annotated[Path | None, typer.Option("--data", help="Data folder; the default is ./bandana_data.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.")]


def _whole(text: str) -> int:
    """A whole number, also written as 1e5."""
    value = float(text)
    if not value.is_integer():
        raise ValueError(text)
    return int(value)


def _option(meaning: str, **more: Any) -> Any:
    return typer.Option(help=meaning, show_default=False, **more)


@app.command()
def demo(data: Data = None, debug: Debug = False) -> None:
    """The main job: benchmark, audits and report on a real trial, in one go."""
    with _failures(debug):
        text = resources.files("flows").joinpath("demo.yaml").read_text(encoding="utf-8")
        _run(text, "demo.yaml", Path.cwd(), data, ["benchmark", "audit", "report"])


@app.command()
def run(spec: SpecPath, data: Data = None, debug: Debug = False) -> None:
    """Benchmark a spec: regret and privacy spent, tracked in MLflow, and the report."""
    with _failures(debug):
        _run_file(spec, data, ["benchmark", "report"])


@app.command()
def audit(
    context: typer.Context,
    spec: Annotated[Path | None, typer.Argument(help="The experiment, a YAML file.", show_default=False)] = None,
    algorithm: Annotated[
        str | None, _option("Your own, FILE.py:NAME: an algorithm, or a function (rewards, seed) -> actions.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="The whole catalog and every building block.")] = False,
    only: Annotated[list[str] | None, _option("With --all: a label to audit; give it several times.")] = None,
    claim: Annotated[str | None, _option("What it promises, such as gdp(mu=1, relation=reward).")] = None,
    relation: Annotated[str | None, _option("Of the claim, if it does not say: reward, record or trajectory.")] = None,
    trust: Annotated[str | None, _option("Of the claim, if it does not say: central, joint or local.")] = None,
    replays: Annotated[int | None, _option("On each side; 20000.", parser=_whole)] = None,
    rounds: Annotated[int | None, _option("Of each replay; 32.", parser=_whole)] = None,
    arms: Annotated[int | None, _option("2, or as the algorithm says.", parser=_whole)] = None,
    confidence: Annotated[float | None, _option("Of all bounds together; 0.95.")] = None,
    delta: Annotated[float | None, _option("At which epsilon is stated; the claim's, or 1e-5.")] = None,
    examples: Annotated[int | None, _option("Cases of the audit without statistics; 100.", parser=_whole)] = None,
    seed: Annotated[int | None, _option("Root of all seeds; 0.", parser=_whole)] = None,
    probe: Annotated[list[int] | None, _option("A record to plant a canary at; give it several times.")] = None,
    low: Annotated[float | None, _option("Least reward that a function is given; 0.")] = None,
    high: Annotated[float | None, _option("Largest one; 1.")] = None,
    data: Data = None,
    debug: Debug = False,
) -> None:
    """Audit a spec's private algorithms, the whole catalog, or your own algorithm; planted faults prove the power."""
    with _failures(debug):
        from flows.specs import SpecError

        others = ("spec", "algorithm", "all_", "only", "probe", "data", "debug")
        given = {name: value for name, value in context.params.items() if name not in others and value is not None}
        given |= {"probes": tuple(probe)} if probe else {}
        if sum((spec is not None, algorithm is not None, all_)) != 1:
            raise SpecError("audit one of: a SPEC, the whole catalog with --all, your own with --algorithm FILE.py:NAME")
        if only and not all_:
            raise SpecError("--only: only with --all")
        if all_:
            _audit_all(only or [], given, data)
            return
        if spec is not None:
            if given:
                names = ", ".join("--probe" if name == "probes" else f"--{name}" for name in given)
                raise SpecError(f"{names}: only with --algorithm; a spec has its own field `audit`")
            _run_file(spec, data, ["audit", "report"])
            return
        if claim is None:
            raise SpecError('--algorithm needs --claim, such as --claim "gdp(mu=1, relation=reward)"')
        _audit_own({"algorithm": algorithm, **given}, data)


@app.command()
def verify(
    evidence: Annotated[Path, typer.Argument(help="An evidence file, *.evidence.npz.", show_default=False)],
    debug: Debug = False,
) -> None:
    """Recompute the bounds and the verdict of an evidence file from its scores, without the algorithm."""
    with _failures(debug):
        from rich.console import Console

        from flows.verify import WIDTH, check, conclude, render

        found = check(evidence)
        console = Console()
        if not console.is_terminal:
            console = Console(width=WIDTH)
        console.print(render(found))
        typer.echo(conclude(evidence, found))
        if not found.is_verified:
            raise typer.Exit(FAILURE)


@app.command()
def report(
    spec: Annotated[Path | None, typer.Argument(help="The experiment; the default is the last one.")] = None,
    data: Data = None,
    debug: Debug = False,
) -> None:
    """Render the report again from what is stored; nothing is computed anew."""
    with _failures(debug):
        _run_file(spec or _last_spec(_open(data)), data, ["report"])


@app.command()
def check(spec: SpecPath, debug: Debug = False) -> None:
    """Check a spec, and tell what it will do, without running it."""
    with _failures(debug):
        from flows.plan import Environment, cells_of
        from flows.specs import load_spec

        checked = load_spec(spec)
        environment = Environment(checked)
        environment.check()
        cells = cells_of(checked)
        n_blocks = sum(len(cell.blocks()) for cell in cells)
        typer.echo(f"{spec}: correct")
        typer.echo(
            f"  {environment.describe()['name']}: {environment.n_actions} arms, horizon {checked.horizon}, "
            f"{checked.replications} replications, {n_blocks} blocks"
        )
        for cell in cells:
            claim = f"claims that {cell.claim().statement} ({cell.claim().theorem})" if cell.is_private else "not private"
            typer.echo(f"  {cell.name:<32} {claim}")


@app.command("list")
def list_(
    as_json: Annotated[bool, typer.Option("--json", help="An array of objects, for machines.")] = False,
    debug: Debug = False,
) -> None:
    """List the algorithms with their privacy model, claim and source."""
    with _failures(debug):
        from algorithms.catalog import CATALOG

        if as_json:
            typer.echo(json.dumps([entry.summary() for entry in CATALOG], indent=1))
            return
        from rich.console import Console
        from rich.table import Table

        columns = ("name", "family", "privacy_model", "guarantee", "calibrations", "claim", "source")
        table = Table(*(column.replace("_", " ") for column in columns), show_lines=True)
        for entry in CATALOG:
            facts = entry.summary()
            shown = [facts[column] for column in columns]
            table.add_row(*(", ".join(x) if isinstance(x, tuple) else str(x or "-") for x in shown))
        Console().print(table)


@app.command()
def calibrate(
    context: typer.Context,
    algorithm: Annotated[
        str, typer.Argument(help="Name and trust model, such as gp-ucb-joint; a wrong one lists them all.")
    ],
    epsilon: Annotated[float | None, _option("Of the claim.")] = None,
    delta: Annotated[float | None, _option("Of the claim; for Renyi DP, where epsilon is shown.")] = None,
    alpha: Annotated[float | None, _option("Renyi order of the claim.")] = None,
    reading: Annotated[str | None, _option("How the print is read where it is ambiguous; `all` for every one.")] = None,
    horizon: Annotated[int | None, _option("Bandits: rounds T.", parser=_whole)] = None,
    episodes: Annotated[int | None, _option("RL: episodes K.", parser=_whole)] = None,
    episode_length: Annotated[int | None, _option("RL: steps H of an episode.", parser=_whole)] = None,
    dimension: Annotated[int | None, _option("Of the features.", parser=_whole)] = None,
    reward_bound: Annotated[float | None, _option("CAPRI: largest absolute reward B.")] = None,
    s_max: Annotated[float | None, _option("CAPRI: largest norm of a projected feature.")] = None,
    sigma_max: Annotated[float | None, _option("CAPRI: the paper's bound on it.")] = None,
    norm_bound: Annotated[float | None, _option("GP-UCB: RKHS norm B of the function.")] = None,
    noise_scale: Annotated[float | None, _option("GP-UCB: sub-Gaussian scale rho of the rewards.")] = None,
    is_clipped: Annotated[bool | None, typer.Option("--clip/--no-clip", help="GP-UCB: clip rewards or not.")] = None,
    has_square: Annotated[bool | None, typer.Option("--square/--no-square", help="GP-UCB: release y^2 too.")] = None,
    switch: Annotated[float | None, _option("AdaR-OFUL: doubling schedule C.")] = None,
    ridge: Annotated[float | None, _option("AdaR-OFUL: regularizer lambda.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One object, for machines.")] = False,
    debug: Debug = False,
) -> None:
    """Compare the noise that a paper prints with the noise that its claim needs."""
    with _failures(debug):
        from flows import calibrate as printed

        calibration = printed.find(algorithm)
        if calibration is None:
            nothing = {"algorithm": algorithm, "is_private": False, "readings": []}
            typer.echo(json.dumps(nothing) if as_json else printed.not_private(algorithm))
            return
        others = ("algorithm", "reading", "as_json", "debug")
        given = {name: value for name, value in context.params.items() if name not in others}
        found = printed.compare(calibration, reading, given)
        if as_json:
            typer.echo(json.dumps(printed.document(calibration, found), indent=1, allow_nan=False))
        else:
            printed.show(calibration, found)


@app.command()
def crosscheck(
    delta: Annotated[
        list[float] | None,
        typer.Option("--delta", help="Where epsilons are compared; give it several times.", show_default="1e-5"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One object, for machines.")] = False,
    debug: Debug = False,
) -> None:
    """Hold every ledger against dp-accounting and opacus, and list the known defects of those libraries."""
    with _failures(debug):
        from flows.crosscheck import WIDTH, check, render, to_json

        result = check(delta)
        if as_json:
            typer.echo(json.dumps(to_json(result), indent=1, allow_nan=False))
        else:
            from rich.console import Console

            console = Console()
            if not console.is_terminal:
                console = Console(width=WIDTH)
            console.print(render(result))
        if not result.is_sound:
            raise typer.Exit(FAILURE)


@app.command()
def ui(
    data: Data = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on the loopback interface.")] = 5000,
    debug: Debug = False,
) -> None:
    """Open MLflow's pages on this machine (loopback only)."""
    with _failures(debug):
        folder = _open(data)
        folder.prepare()
        from flows.tracking import Tracker

        tracker = Tracker(folder.root)
        typer.echo("MLflow starts; this takes up to a minute. Then open:")
        for suite in _suites(folder):
            typer.echo(f"  {suite}: {tracker.compare_url(suite, f'http://127.0.0.1:{port}')}")
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, *tracker.server_arguments(port)])


def _open(data: Path | None) -> DataFolder:
    """The data folder; one that cannot be made is the user's mistake."""
    from flows.specs import SpecError

    try:
        return DataFolder.open(data)
    except OSError as error:
        if error.errno in _FULL:
            raise
        raise SpecError(f"--data: the folder cannot be used: {error}") from error


def _audit_own(asked: dict[str, Any], data: Path | None) -> None:
    """Audits one file of the user's, and says where the evidence lies."""
    from flows.audit_report import tell
    from flows.own import Request, audit_own, write_files

    request = Request(**asked)
    loaded, outcome = audit_own(request)
    files = write_files(loaded, outcome, request, _open(data).root / "own")
    for line in tell(loaded.label, outcome):
        typer.echo(line)
    here = Path.cwd()
    shown = {kind: path.relative_to(here) if path.is_relative_to(here) else path for kind, path in files.items()}
    for kind, place in shown.items():
        typer.echo(f"{kind:<9} {place}")
    typer.echo(f"Anybody can recompute it:  bandana verify {shown['evidence']}")
    if outcome.verdict != "PASS":
        raise typer.Exit(FAILURE)


def _audit_all(only: list[str], given: dict[str, Any], data: Path | None) -> None:
    """Audits the whole catalog, or some labels of it, and says where the report lies."""
    from audits.outcome import Effort
    from audits.whole_catalog import subjects
    from flows.specs import SpecError

    known = {"replays": 100_000, "confidence": 0.95, "delta": 1e-5, "examples": 100, "seed": 0}
    if wrong := [f"--{'probe' if name == 'probes' else name}" for name in given if name not in known]:
        raise SpecError(f"{', '.join(wrong)}: not with --all, which takes {', '.join(f'--{name}' for name in known)}")
    try:
        effort = Effort(**{**known, **given})
    except ValueError as error:
        raise SpecError(f"--{error}") from error
    labels = list(subjects())
    if unknown := [label for label in only if label not in labels]:
        raise SpecError(f"--only: unknown label {unknown[0]!r}; known are {', '.join(labels)}")
    folder = _open(data)
    folder.prepare()
    from flows.audit_all import audit_all
    from flows.interrupt import stop_at_once_on_interrupt

    stop_at_once_on_interrupt(FAILURE)
    done = audit_all([label for label in labels if not only or label in only], effort, str(folder.root))
    for found in done["audits"].values():
        for line in found["lines"]:
            typer.echo(line)
    for kind, path in done["files"].items():
        typer.echo(f"{kind:<5} {path}")
    verdicts = [found["entry"]["verdict"] for found in done["audits"].values()]
    typer.echo(", ".join(f"{verdicts.count(v)} {v}" for v in ("PASS", "FAIL", "INCONCLUSIVE")))
    if set(verdicts) != {"PASS"}:
        raise typer.Exit(FAILURE)


def _run_file(path: Path, data: Path | None, steps: list[str]) -> None:
    from flows.specs import SpecError

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: cannot be read: {error}") from error
    _run(text, str(path), path.parent, data, steps)


def _run(text: str, source: str, where: Path, data: Path | None, steps: list[str]) -> None:
    """Checks the spec, runs the steps, and says where everything lies."""
    from flows.plan import Environment, cells_of
    from flows.specs import SpecError, parse_spec

    spec = parse_spec(text, source, where)
    cells = cells_of(spec)
    Environment(spec).check()
    if steps[0] == "audit" and not any(cell.is_private for cell in cells):
        raise SpecError(f"{source}: algorithms: there is nothing to audit, no algorithm here is private")
    folder = _open(data)
    folder.prepare()
    from flows.interrupt import stop_at_once_on_interrupt
    from flows.store import write_whole
    from flows.suite import suite

    stop_at_once_on_interrupt(FAILURE)

    write_whole(folder.suite(spec.name) / "spec.yaml", _standing_alone(spec, text).encode())
    done = suite(spec, text, str(folder.root), steps)
    _say_what_was_done(spec, folder, done, data)


def _standing_alone(spec: Spec, text: str) -> str:
    """The spec's text with its data file's place made absolute, so that it can be run from anywhere."""
    path = getattr(spec.environment, "path", None)
    if path is None:
        return text
    import yaml

    tree = yaml.safe_load(text)
    tree["environment"]["path"] = str(Path(path).absolute())
    return str(yaml.safe_dump(tree, sort_keys=False))


def _say_what_was_done(spec: Spec, folder: DataFolder, done: dict[str, Any], data: Path | None) -> None:
    for outcome in done["audits"]:
        mu = outcome["mu"]
        shown = "  >=  ".join(
            f"{name} {'infinite' if mu[name] is None else format(mu[name], '.4f')}"
            for name in ("claimed", "accounted", "measured")
        )
        typer.echo(f"{outcome['verdict']:<13} {outcome['label']:<28} mu: {shown}")
        if outcome["verdict"] != "PASS":
            for reason in outcome["reasons"]:
                typer.echo(f"              {reason}")
            for line in (outcome["structural"]["counterexample"] or {"lines": ()})["lines"]:
                typer.echo(f"              {line}")
    for kind in ("html", "pdf", "json"):
        typer.echo(f"{kind:<5} {done['files'][kind]}")
    option = "" if data is None else f" --data {data}"
    program = Path(sys.argv[0])
    command = "bandana" if _on_path(program) else str(program)
    typer.echo(f"Compare the runs in MLflow:  {command} ui{option}")
    if any(outcome["verdict"] != "PASS" for outcome in done["audits"]):
        raise typer.Exit(FAILURE)


def _on_path(program: Path) -> bool:
    return str(program.parent) in os.environ.get("PATH", "").split(os.pathsep)


def _suites(folder: DataFolder) -> list[str]:
    parent = folder.suite("x").parent
    return sorted(path.name for path in parent.iterdir()) if parent.exists() else []


def _last_spec(folder: DataFolder) -> Path:
    specs = [folder.suite(name) / "spec.yaml" for name in _suites(folder)]
    found = [path for path in specs if path.exists()]
    if not found:
        from flows.specs import SpecError

        raise SpecError(f"there is no suite in {folder.root} yet; name a spec, or run one first")
    return max(found, key=lambda path: path.stat().st_mtime)


class _failures:  # noqa: N801  (used as a verb: with _failures(debug))
    """One line for each failure: exit code 2 for the user's mistakes, 1 for the rest; a traceback only if asked for."""

    def __init__(self, debug: bool) -> None:
        self._debug = debug

    def __enter__(self) -> None:
        if self._debug:
            for name in ("PREFECT_LOGGING_LEVEL", "MLFLOW_LOGGING_LEVEL"):
                os.environ.setdefault(name, "WARNING")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, typer.Exit | SystemExit) or self._debug:
            return
        message, code = explain(error)
        typer.echo(f"error: {message}", err=True)
        raise SystemExit(code) from error


def explain(error: BaseException) -> tuple[str, int]:
    """What to tell the user of a failure, and the exit code."""
    from flows.specs import SpecError

    chain: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in chain:
        chain.append(current)
        current = current.__cause__ or current.__context__
    for link in chain:
        if isinstance(link, SpecError):
            return str(link), USER_MISTAKE
    if isinstance(error, KeyboardInterrupt):
        from flows.interrupt import MESSAGE

        return MESSAGE, FAILURE
    for link in chain:
        full = (isinstance(link, OSError) and link.errno in _FULL) or "disk is full" in str(link)
        if full:
            where = f" ({link.filename})" if isinstance(link, OSError) and link.filename else ""
            return (
                f"the disk is full{where}; what was finished is kept: free some space and run the same command again",
                FAILURE,
            )
    if isinstance(error, PermissionError):
        return f"no permission: {error}; choose another folder with --data", FAILURE
    return f"{type(error).__name__}: {error} (run again with --debug for the traceback)", FAILURE


def main() -> None:
    """The console script."""
    app()
