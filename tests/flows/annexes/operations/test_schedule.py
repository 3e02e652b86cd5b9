"""What runs by the clock: mistakes told before anything starts, and `bandana serve` for real on the loopback interface."""

import inspect
import os
import signal
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
import yaml
from intruder import FOREIGN, ask, is_refused, start_a_script
from listening import beyond_loopback, listening
from typer.testing import CliRunner

from bandana.flows.annexes.operations.clock import Times
from bandana.flows.cli import app
from bandana.flows.running.processes import end, is_running
from bandana.flows.servers.loopback import check_port
from bandana.flows.texts.mistakes import SpecError

_ROOT = Path(__file__).parents[4]


def _command(*arguments):
    return [sys.executable, "-c", "from bandana.flows.cli import main; main()", *map(str, arguments)]


def _environment():
    """Ours but for Prefect's settings, with the packages found from any folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    return {**kept, "PYTHONPATH": os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])}


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (Times(nightly="61 2 * * *"), "--nightly: '61 2 \\* \\* \\*' is not a cron schedule: minute hour day month weekday"),
        (Times(weekly="sunday"), "--weekly: 'sunday' is not a cron schedule"),
        (Times(timezone="Mars/Olympus"), "--timezone: 'Mars/Olympus' is not a time zone, such as UTC or Europe/Berlin"),
    ],
)
def test_what_is_no_schedule_is_told_with_its_option(times, message):
    with pytest.raises(SpecError, match=message):
        times.check()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nightly", "61 2 * * *"], "--nightly"),
        (["--run", "other"], "--run: 'other' is not served; there are demo, whole"),
    ],
)
def test_a_mistake_is_told_before_anything_starts(tmp_path, monkeypatch, free_port, arguments, message):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["serve", "--port", str(free_port), "--data", str(tmp_path), *arguments])
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert "Traceback" not in done.output
    assert not (tmp_path / "prefect" / "server.log").exists()


def test_each_served_spec_is_read_once_and_its_plan_derived_once(write_spec, tmp_path, monkeypatch, free_port, counts):
    monkeypatch.chdir(tmp_path)
    words = ["serve", write_spec(), "--port", free_port, "--data", tmp_path, "--run", "other"]
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert "--run: 'other' is not served; there are small, whole-catalog" in done.stderr
    assert counts == {"plans": 1, "environments": 1}


def test_a_port_in_use_is_told():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(SpecError, match=f"--port: {other.getsockname()[1]} cannot be used"):
            check_port(other.getsockname()[1])


def test_each_spec_has_a_night_and_the_catalog_a_week(write_spec, tmp_path):
    from bandana.flows.annexes.operations.schedule import Nightly, Times, deployments

    path = write_spec()
    night, week = deployments([Nightly.of(str(path), tmp_path)], Times("5 1 * * *", "6 2 * * 3", "Europe/Berlin"), "/data")
    assert (night.flow_name, night.name, week.flow_name, week.name) == (
        "nightly-benchmark", "small", "weekly-audit", "whole-catalog",
    )  # fmt: skip
    for deployment, cron in ((night, "5 1 * * *"), (week, "6 2 * * 3")):
        (schedule,) = deployment.schedules
        assert (schedule.schedule.cron, schedule.schedule.timezone) == (cron, "Europe/Berlin")
        assert deployment.concurrency_limit == 1
        assert deployment.description
        assert "bandana" in deployment.tags
    assert night.parameters == {"spec": str(path), "data": "/data", "steps": ["benchmark", "gate", "report", "fresh"]}


def test_two_specs_of_one_name_are_refused(write_spec, tmp_path):
    from bandana.flows.annexes.operations.schedule import Nightly, Times, deployments

    path = write_spec()
    (tmp_path / "other.yaml").write_text(path.read_text())
    with pytest.raises(SpecError, match="two specs have the name 'small'"):
        deployments([Nightly.of(str(each), tmp_path) for each in (path, tmp_path / "other.yaml")], Times(), "/data")


def test_the_deployments_of_work_pools_name_flows_that_take_their_parameters():
    from prefect.client.schemas.schedules import CronSchedule

    from bandana.flows.annexes.operations import schedule

    tree = yaml.safe_load((_ROOT / "prefect.yaml").read_text())
    assert {item["name"] for item in tree["deployments"]} == {"demo-pool", "whole-catalog-pool"}
    for item in tree["deployments"]:
        path, name = item["entrypoint"].split(":")
        assert (_ROOT / path).exists()
        assert set(item["parameters"]) <= set(inspect.signature(getattr(schedule, name).fn).parameters)
        (clock,) = item["schedules"]
        CronSchedule(cron=clock["cron"], timezone=clock["timezone"])
        assert item["concurrency_limit"] == 1


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not tell of processes")
def test_grandchildren_that_ignore_a_request_are_ended():
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(100)"
    program = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {deaf!r}]).wait()"
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "1\n"  # the grandchild is deaf by now
    family = _family(child.pid)
    assert len(family) == 2
    end(family, patience=0.5)
    child.wait(timeout=10)
    assert not [process for process in family if is_running(process)]


def test_another_process_of_the_same_number_is_left_alone():
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
    try:
        earlier = psutil.Process(child.pid)
        earlier._ident = (child.pid, 1.0)  # it started when the machine did
        end([earlier], patience=0.1)
        assert child.poll() is None
    finally:
        child.kill()
        child.wait()


def _family(pid):
    """A process and all its descendants."""
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


@pytest.mark.slow
def test_a_night_benchmarks_holds_against_the_baseline_and_reports(prefect_server, write_spec, data):
    from bandana.flows.annexes.operations.schedule import nightly_benchmark

    done = nightly_benchmark(str(write_spec()), str(data))
    assert done["audits"] == []
    assert "no baseline yet" in done["gate"]["notes"][0]
    assert done["files"]["html"] == str(data / "suites" / "small" / "report.html")
    assert (data / "suites" / "small" / "report.html").exists()
    assert (data / "suites" / "small" / "spec.yaml").exists()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not tell of processes")
@pytest.mark.parametrize("at_once", [[], pytest.param(["--run", "small"], marks=pytest.mark.nightly)], ids=["", "and runs"])
def test_serve_schedules_runs_and_ends_without_a_trace(write_spec, data, tmp_path, free_port, at_once):
    """Deployments and their next runs through the API, one run to its end, then SIGTERM: nobody is left.

    `make test` waits for no run: the flow that it would run is played above, in this process.
    """
    process = subprocess.Popen(
        _command("serve", write_spec(), "--port", free_port, "--data", data, *at_once),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        env=_environment(),
    )  # fmt: skip
    try:
        screen = []
        for line in process.stdout:
            screen.append(line)
            if "Ctrl-C ends it" in line:
                break
        told = "".join(screen)
        assert f"http://127.0.0.1:{free_port} " in told, told
        assert "nightly-benchmark/small" in told
        assert "weekly-audit/whole-catalog" in told
        api, kept = f"http://127.0.0.1:{free_port}/api", data / "prefect" / "login"
        assert f"the whole line in {kept}" in told
        login = kept.read_text().strip()
        password = login.partition(":")[2]
        assert password not in told
        assert not [one for one in _family(process.pid) if password in Path(f"/proc/{one.pid}/cmdline").read_text()]

        def _ask(path, **body):
            return ask(api, path, body, login=login).body

        assert is_refused(api)
        (refused,) = start_a_script(api, f"touch {tmp_path}/ran", Origin=FOREIGN)
        assert refused.status == 401
        served = {item["name"]: item for item in _ask("/deployments/filter")}
        assert set(served) == {"small", "whole-catalog"}
        planned = _ask(
            "/flow_runs/filter", sort="EXPECTED_START_TIME_ASC",
            deployments={"id": {"any_": [served["whole-catalog"]["id"]]}},
        )  # fmt: skip
        first = datetime.fromisoformat(planned[0]["expected_start_time"])
        assert (first.weekday(), first.hour, first.minute) == (6, 3, 0)
        assert first > datetime.now(UTC)
        if at_once:
            deadline = time.monotonic() + 150
            wanted = {"deployments": {"id": {"any_": [served["small"]["id"]]}}}
            ended = {"state": {"type": {"any_": ["COMPLETED", "FAILED", "CRASHED"]}}}
            while not (runs := _ask("/flow_runs/filter", flow_runs=ended, **wanted)):
                assert time.monotonic() < deadline
                assert process.poll() is None, process.communicate()
                time.sleep(0.5)
            assert runs[0]["state"]["name"] == "Completed", runs[0]["state"]
            assert (data / "suites" / "small" / "report.html").exists()
        family = _family(process.pid)
        assert len(family) >= 2
        found = listening(process.pid)
        assert ("127.0.0.1", free_port) in found
        assert not beyond_loopback(found)
        # Sooner or later Prefect's runner listens too, on a port of its own, to cancel runs, each with a token.
        assert len(found) <= 2
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=60)
        assert process.returncode == 0, rest
        assert "Traceback" not in rest
        assert not [one for one in family if is_running(one)]
        check_port(free_port)
        assert kept.stat().st_mode & 0o777 == 0o600
        files = [path for path in data.rglob("*") if path.is_file()]
        assert [path for path in files if password.encode() in path.read_bytes()] == [kept]
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
