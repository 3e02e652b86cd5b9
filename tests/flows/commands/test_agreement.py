"""Every command that starts work asks before more than a day of it, and starts nothing until that is agreed to."""

import socket
from contextlib import nullcontext, suppress

import pytest
import yaml
from typer.testing import CliRunner

from bandana.flows.cli import app
from bandana.flows.commands import agreement
from bandana.flows.commands.agreement import Work
from bandana.flows.commands.options import USER_MISTAKE
from bandana.flows.plan.plan import Plan
from bandana.flows.queries import explain
from bandana.flows.running.executors import Resources
from bandana.flows.spec.spec import load_spec
from bandana.flows.suites import audit_all, suite
from bandana.flows.texts.mistakes import SpecError

ASKS = "start it with --yes"
MUCH = {"replications": 10**13, "block_size": 10**11, "horizon": 10**4}


@pytest.fixture(autouse=True)
def _nothing_is_started(tmp_path, monkeypatch):
    """What a command would do next is refused, so that a question that is not asked fails the test."""
    monkeypatch.chdir(tmp_path)

    def refuse(*_, **__):
        raise SpecError("started")

    for module, name in ((suite, "suite"), (audit_all, "audit_all")):
        monkeypatch.setattr(module, name, refuse)
    for name in ("begin", "warm_up", "while_the_server_starts"):
        for command in ("suites", "audit.command"):
            monkeypatch.setattr(f"bandana.flows.commands.{command}.{name}", refuse, raising=False)
    with suppress(ImportError):
        monkeypatch.setattr("bandana.flows.annexes.planning.tuning.tune", refuse)
        for name in ("begin", "warm_up", "while_the_server_starts"):
            monkeypatch.setattr(f"bandana.flows.annexes.planning.tune_command.{name}", refuse)
    with suppress(ImportError):
        monkeypatch.setattr("bandana.flows.annexes.operations.service.server", refuse)


def _said(*command):
    done = CliRunner().invoke(app, [*map(str, command)])
    assert done.exit_code == USER_MISTAKE, done.output
    return done.stderr


@pytest.fixture
def long_spec(write_spec):
    """Years of rounds, which measuring tells in a second."""
    return write_spec(**MUCH, twins=False, references=False, audit__replays=10**10)


def _commands(folder, path):
    """Each command that starts work, on a spec that takes years."""
    tuned = yaml.safe_load(path.read_text())
    tuned["tuning"] = {"parameter": "beta", "values": [1, 2], "replications": 10**13}
    (folder / "tuned.yaml").write_text(yaml.safe_dump(tuned))
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    return {
        "run": ["run", path],
        "audit": ["audit", path],
        "tune": ["tune", folder / "tuned.yaml"],
        "serve": ["serve", path, "--port", port],
        "audit-catalog": ["audit-catalog", "--replays", "1e12"],
    }


@pytest.mark.parametrize("name", ["run", "audit", "tune", "serve", "audit-catalog"])
def test_more_than_a_day_of_work_is_asked_about(name, tmp_path, long_spec):
    if annex := {"serve": "operations", "tune": "planning"}.get(name):
        pytest.importorskip(f"bandana.flows.annexes.{annex}")
    command = _commands(tmp_path, long_spec)[name]
    said = _said(*command)
    assert ASKS in said
    assert said.count("\n") == 1
    assert ASKS not in _said(*command, "--yes")


def test_dry_run_says_who_asks_and_what_is_short_is_not_asked_about(write_spec, long_spec):
    run = CliRunner().invoke
    shown = run(app, ["run", str(long_spec), "--dry-run"])
    assert (shown.exit_code, "ask for --yes" in shown.stdout) == (0, True)
    assert "ask for --yes" not in run(app, ["run", str(write_spec()), "--dry-run"]).stdout
    assert _said("run", write_spec()) == _said("audit-catalog", "--only", "adap-ucb tight") == "error: started\n"


@pytest.mark.parametrize(("hours", "is_refused"), [(23.9, False), (24.1, True)])
def test_a_day_is_the_limit_of_all_that_starts_together(hours, is_refused, write_spec, monkeypatch):
    plan = Plan.of(load_spec(write_spec(horizon=10**12)))
    monkeypatch.setattr(explain, "explain", lambda *_: {"seconds": hours * 1200})
    work = [Work(plan, ["benchmark"])] * 3
    if is_refused:
        with pytest.raises(SpecError, match=r"^x: about 24\.1 h of work on \d+ workers, by short trials"):
            agreement.ask("x", work, None, None, is_agreed=False)
    else:
        agreement.ask("x", work, None, None, is_agreed=False)
    agreement.ask("x", work, None, None, is_agreed=True)


@pytest.mark.parametrize(("workers", "is_tried"), [(1, True), (2, True), (3, False)])
def test_trials_are_made_where_a_day_of_all_workers_may_be_too_short(workers, is_tried, write_spec, monkeypatch):
    plan = Plan.of(load_spec(write_spec(replications=1, block_size=1, horizon=10**9)))
    monkeypatch.setattr(explain, "explain", lambda *_: {"seconds": 1e6})
    work = [Work(plan, ["benchmark"])] * (25 // len(plan.cells))
    assert 2e10 < len(work) * len(plan.cells) * 1e9 <= 3e10, "of arms 1e10 rounds take a worker less than a day"
    with pytest.raises(SpecError) if is_tried else nullcontext():
        agreement.ask("x", work, None, Resources(workers=workers), is_agreed=False)
