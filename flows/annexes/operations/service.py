"""A Prefect server of our own on the loopback interface, and the loop that runs what is scheduled, ended together."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from bandana.flows.folder.private_files import make_file, make_folder, umask_in
from bandana.flows.folder.scratch import is_alive
from bandana.flows.running.interrupt import server_ended, stop
from bandana.flows.running.processes import descendants, end, end_with
from bandana.flows.servers import login as logins
from bandana.flows.servers.loopback import HOST, check_port
from bandana.flows.servers.prefect_health import check_database
from bandana.flows.servers.temporary_server import last_line, laying_out
from bandana.flows.texts.json_text import JsonObject

if TYPE_CHECKING:
    from prefect.deployments.runner import RunnerDeployment

SERVICE = "BANDANA_SERVICE"
"""Environment variable: number of the process of `bandana serve` that started a run."""
FAILED = 1
"""Exit code of a service whose server ended."""
_START_UP = 240.0
_PLANNING = 60.0  # it plans every five seconds
_GRACE = 20.0
_ZOMBIES = "Mark runs without a heartbeat as crashed"
HEARTBEAT = 30
"""Seconds between the signs of life of a run, the least that Prefect takes."""


def service_settings(port: int, login: str) -> dict[str, str]:
    """The environment of a Prefect that serves on a port of the loopback interface and asks its clients for the login.

    It is set before Prefect is imported; what Prefect logs is shown in its pages.
    """
    api = f"http://{HOST}:{port}/api"
    return {
        "PREFECT_API_URL": api,
        logins.CLIENT: login,
        **logins.server_settings(login, port),
        "PREFECT_SERVER_API_HOST": HOST,
        "PREFECT_SERVER_API_PORT": str(port),
        "PREFECT_SERVER_UI_API_URL": api,
        "PREFECT_LOGGING_LEVEL": "INFO",
        "PREFECT_SERVER_LOGGING_LEVEL": "WARNING",
        "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": str(HEARTBEAT),
    }


def end_with_service() -> None:
    """In a run that `bandana serve` started: ends it when the service ends, however that ends."""
    service = os.environ.get(SERVICE, "")
    if service.isdecimal() and (os.getppid() == int(service) or not is_alive(int(service))):
        end_with(int(service))


@contextmanager
def server(port: int, log: Path) -> Iterator[str]:
    """A Prefect server that answers, for as long as the context lasts; also SIGTERM leaves the context.

    It listens on the loopback interface, writes its output to `log`, and the address of its pages is yielded.

    Raises:
      SpecError: the port is in use.
      ServerError: its database is damaged.
      RuntimeError: it ended, or did not answer in time; the message holds its last line.
    """
    check_port(port)
    make_folder(log.parent)
    make_file(log)
    check_database(log.parent)
    previous = signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", HOST, "--port", str(port)]
    starting = ExitStack()
    mark = starting.enter_context(laying_out(log.parent))
    with log.open("ab") as sink:
        # In a session of its own: Ctrl-C reaches us alone, and the server ends after the runs that report to it.
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, start_new_session=True, preexec_fn=_end_with_parent,
            umask=umask_in(log.parent),
        )  # fmt: skip
    stopping = threading.Event()
    try:
        _wait_until_healthy(process, f"http://{HOST}:{port}/api/health", log)
        mark.unlink(missing_ok=True)
        starting.close()
        _watch(process, log, stopping)
        yield f"http://{HOST}:{port}"
    finally:
        stopping.set()
        starting.close()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _stop(process)
        signal.signal(signal.SIGTERM, previous)


def _watch(process: subprocess.Popen[bytes], log: Path, stopping: threading.Event) -> None:
    """Ends everything in one line if the server ends by itself: the runner would ask it again and again."""

    def wait() -> None:
        code = process.wait()
        if not stopping.is_set():
            how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}: {last_line(log)}"
            stop(server_ended(f"Prefect's server {how}", log.parent.parent), FAILED)

    threading.Thread(target=wait, name="prefect-server", daemon=True).start()


@dataclass(frozen=True)
class Served:
    """Deployments that the server knows, and the runner that runs them."""

    runner: Any
    ids: tuple[str, ...]
    times: dict[str, datetime]
    """Name -> when the server runs it next."""


def register(deployments: Sequence[RunnerDeployment]) -> Served:
    """Tells the server what is served, and asks it when each runs next.

    Raises:
      RuntimeError: the server plans no runs.
    """
    from prefect.client.orchestration import get_client
    from prefect.runner import Runner

    _watch_for_zombies()
    runner: Any = Runner(name="bandana")  # its methods are synchronous here, whatever their types say
    ids = {str(deployment.name): str(runner.add_deployment(deployment)) for deployment in deployments}
    mark_stopped(list(ids.values()), "its `bandana serve` was killed")
    times: dict[str, datetime] = {}
    now = datetime.now(UTC).isoformat()
    deadline = time.monotonic() + _PLANNING
    with get_client(sync_client=True) as client:
        while missing := [name for name in ids if name not in times]:
            for name in missing:
                wanted = {
                    "deployments": {"id": {"any_": [ids[name]]}},
                    "flow_runs": {"state": {"type": {"any_": ["SCHEDULED"]}}, "expected_start_time": {"after_": now}},
                    "sort": "EXPECTED_START_TIME_ASC",
                    "limit": 1,
                }
                for run in client.request("POST", "/flow_runs/filter", json=wanted).json():
                    times[name] = datetime.fromisoformat(run["expected_start_time"])
            if missing and time.monotonic() > deadline:
                raise RuntimeError(f"the server plans no runs of {', '.join(missing)}: its log says why")
            time.sleep(0.5)
    return Served(runner, tuple(ids.values()), times)


def run_until_stopped(served: Served, run_at_once: Sequence[str]) -> None:
    """Runs what is due until Ctrl-C or SIGTERM; then pauses the schedules, ends what runs, and returns.

    Deployments in `run_at_once`, by their full names flow/deployment, run now too.
    """
    from prefect.deployments import run_deployment
    from prefect.exceptions import TerminationSignal

    start: Any = run_deployment
    for name in run_at_once:
        start(name, timeout=0)

    started: list[psutil.Process] = []

    async def run() -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def stop(*_: object) -> None:
            started.extend(process for process in descendants() if process not in before)
            task.cancel()

        # Prefect's own handler of SIGTERM leaves the loop before schedules are paused. The loop's handlers come first: an
        # exception would break what the runner imports when it starts.
        served.runner.handle_sigterm = lambda *_: None
        for sign in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(sign, stop)
        await served.runner.start()

    before = descendants()
    try:
        with suppress(KeyboardInterrupt, asyncio.CancelledError, TerminationSignal):
            asyncio.run(run())
    finally:
        for sign in (signal.SIGINT, signal.SIGTERM):
            signal.signal(sign, signal.SIG_IGN)  # what follows takes seconds, and is the end
        end(started)
        mark_stopped(served.ids, "`bandana serve` was stopped")


def mark_stopped(deployments: Sequence[str], why: str) -> None:
    """Marks as Crashed what a stopped service left unfinished of its deployments, given by id, and shows why with the runs.

    Nobody else would, and they would block the next night.
    """
    from prefect.client.orchestration import get_client
    from prefect.states import Crashed

    unfinished = {"state": {"type": {"any_": ["RUNNING", "PENDING", "CANCELLING"]}}}
    with get_client(sync_client=True) as client:
        wanted: JsonObject = {"deployments": {"id": {"any_": list(deployments)}}, "flow_runs": unfinished}
        while runs := [run["id"] for run in client.request("POST", "/flow_runs/filter", json=wanted).json()]:
            for run in runs:
                client.set_flow_run_state(run, Crashed(message=why), force=True)
            wanted = {"flow_runs": {**unfinished, "parent_flow_run_id": {"any_": runs}}}


def _watch_for_zombies() -> None:
    """A run whose process was killed with its runner becomes Crashed: nobody else would tell the server."""
    from prefect.automations import Automation
    from prefect.client.schemas.objects import StateType
    from prefect.events.actions import ChangeFlowRunState
    from prefect.events.schemas.automations import EventTrigger, Posture
    from prefect.events.schemas.events import ResourceSpecification

    kind: Any = Automation  # its methods are synchronous here, whatever their types say
    try:
        kind.read(name=_ZOMBIES)
        return
    except ValueError:
        pass  # there is none yet
    ends = {f"prefect.flow-run.{state}" for state in ("Completed", "Failed", "Cancelled", "Crashed")}
    kind(
        name=_ZOMBIES,
        description="Killed processes and lost machines tell nothing; their silence does.",
        trigger=EventTrigger(
            after={"prefect.flow-run.heartbeat"},
            expect={"prefect.flow-run.heartbeat", *ends},
            match=ResourceSpecification({"prefect.resource.id": ["prefect.flow-run.*"]}),
            for_each={"prefect.resource.id"},
            posture=Posture.Proactive,
            threshold=1,
            within=timedelta(seconds=3 * HEARTBEAT),
        ),
        actions=[ChangeFlowRunState(state=StateType.CRASHED, message="no heartbeat for 90 seconds")],
    ).create()


def _end_with_parent() -> None:
    """Linux tells the server when we are gone, also if we were killed."""
    if sys.platform == "linux":
        import ctypes

        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


def _wait_until_healthy(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    deadline = time.monotonic() + _START_UP
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"Prefect's server ended with code {process.returncode}: {last_line(log)}; see {log}")
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            pass
        time.sleep(0.2)
    raise RuntimeError(f"Prefect's server does not answer at {address}: {last_line(log)}; see {log}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Asks the server's whole session to end, and makes it."""
    for sign, patience in ((signal.SIGTERM, _GRACE), (signal.SIGKILL, _GRACE)):
        try:
            os.killpg(process.pid, sign)
            process.wait(patience)
            return
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue
