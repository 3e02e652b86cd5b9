"""Commands on specs: demo, run, check, report."""

from __future__ import annotations

import os
import sys
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from flows.commands.failures import failures
from flows.commands.options import FAILURE, Data, Debug, SpecPath, open_data
from flows.settings import DataFolder

if TYPE_CHECKING:
    from flows.specs import Spec


def demo(data: Data = None, debug: Debug = False) -> None:
    """The main job: benchmark, audits and report on a real trial, in one go."""
    with failures(debug):
        text = resources.files("flows").joinpath("demo.yaml").read_text(encoding="utf-8")
        _run(text, "demo.yaml", Path.cwd(), data, ["benchmark", "audit", "report"])


def run(spec: SpecPath, data: Data = None, debug: Debug = False) -> None:
    """Benchmark a spec: regret and privacy spent, tracked in MLflow, and the report."""
    with failures(debug):
        run_file(spec, data, ["benchmark", "report"])


def check(spec: SpecPath, debug: Debug = False) -> None:
    """Check a spec, and tell what it will do, without running it."""
    with failures(debug):
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


def run_file(path: Path, data: Path | None, steps: list[str]) -> None:
    """Reads a spec and runs the steps on it."""
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
    folder = open_data(data)
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


def suites_of(folder: DataFolder) -> list[str]:
    """Names of the suites of a data folder."""
    parent = folder.suite("x").parent
    return sorted(path.name for path in parent.iterdir()) if parent.exists() else []
