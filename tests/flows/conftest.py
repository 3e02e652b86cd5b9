"""A small, complete spec, and a factory that changes one thing in it."""

import gc
import json
import os
import shutil
import socket
import time
from collections import Counter
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from runs import Whole, killable, start
from session_wide import once, session_folder, shared_server
from small_spec import SMALL
from stand_ins import StandIns

from bandana.audits.reporting import render
from bandana.audits.reporting.figures import drawing


@pytest.fixture
def small_text():
    return SMALL


@pytest.fixture
def write_spec(tmp_path):
    """Writes the small spec with some fields replaced (dotted names), and returns its path."""

    def write(**changes):
        tree = yaml.safe_load(SMALL)
        for dotted, value in changes.items():
            *path, last = dotted.split("__")
            node = tree
            for part in path:
                node = node[int(part) if part.isdigit() else part]
            if value is None:
                del node[last]
            else:
                node[last] = value
        target = tmp_path / "spec.yaml"
        target.write_text(yaml.safe_dump(tree, sort_keys=False))
        return target

    return write


@pytest.fixture(autouse=True)
def _own_environment():
    """What a test or the code under test puts into the environment ends with the test: later tests start commands too."""
    before = dict(os.environ)
    yield
    if dict(os.environ) != before:
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture
def seeded_nights(monkeypatch):
    """Nights of this test have the seeds 0, 1, ...: fresh ones of two nights refute a tight claim that holds once in 200."""
    from bandana.flows.annexes.operations import fresh_nights

    seeds = count()
    monkeypatch.setattr(fresh_nights, "secrets", SimpleNamespace(token_hex=lambda n_bytes: f"{next(seeds):x}"))


@pytest.fixture(scope="module", autouse=True)
def _stand_ins():
    """Pages that these files' tests write in this process have stand-ins of their figures, see `StandIns`.

    They end with the file: figures have tests of their own, which the same process may run next.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawing, "DRAWN", StandIns())
        yield
    render._sections_of.cache_clear()


@pytest.fixture(scope="module")
def drawn():
    """Figures of a test file's pages are drawn, as in a command."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawing, "DRAWN", {})
        render._sections_of.cache_clear()
        yield


@pytest.fixture(scope="session")
def server_settings(tmp_path_factory):
    """The settings of clients of a Prefect server that all workers share; it is started for the first test that asks."""
    from bandana.flows.folder.settings import DataFolder

    folder, before = session_folder(tmp_path_factory) / "prefect-server", dict(os.environ)
    DataFolder.open(folder).prepare()
    with shared_server(folder) as settings:
        os.environ.clear()
        os.environ.update(before)
        yield settings


@pytest.fixture(scope="session")
def prefect_server(server_settings):
    """Flows of this process are kept by the shared server; the value is the settings of its clients.

    They stand in no environment: a command that a test starts begins a server of its own, unless it is handed them.
    """
    from prefect import context, settings
    from prefect.events.worker import EventsWorker
    from prefect.logging.configuration import setup_logging
    from prefect.logging.handlers import APILogWorker
    from prefect.settings import temporary_settings

    asked = {getattr(settings, name): value for name, value in server_settings.items()}
    # No heartbeats, as on a temporary server: with them, each flow would end a second later. Prefect's logs are as silent as
    # in a command, whoever imported it first: its handlers write to the output of an earlier test.
    asked |= {settings.PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None, settings.PREFECT_LOGGING_LEVEL: "CRITICAL"}
    with (
        temporary_settings(asked),
        context._temporary_global_settings_context(context.get_settings_context()),  # in threads too
    ):
        setup_logging()
        yield server_settings
        # What is sent later would start a server of Prefect's own.
        for worker in (APILogWorker, EventsWorker):
            worker.drain_all()


@pytest.fixture(scope="session")
def laid_out(server_settings, tmp_path_factory):
    """A data folder in which both databases have their tables, and no rows of ours: laying them out takes seconds."""

    def lay_out(folder):
        from bandana.flows.tracking.tracker import Tracker

        (folder / "prefect").mkdir()
        shutil.copy(session_folder(tmp_path_factory) / "prefect-server" / "empty.db", folder / "prefect" / "prefect.db")
        Tracker(folder)

    return once(session_folder(tmp_path_factory) / "laid-out", lay_out)


@pytest.fixture
def data(laid_out, tmp_path):
    """A data folder of the test's own, laid out already."""
    return Path(shutil.copytree(laid_out, tmp_path / "data"))


@pytest.fixture(scope="session")
def uninterrupted(tmp_path_factory):
    """The spec and the data folder of one whole run with audits, from nothing, and what it printed; nobody changes them."""
    folder = session_folder(tmp_path_factory) / "uninterrupted"

    def run(place):
        process = start(killable(place), place / "data")
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, (out, err)
        (place / "printed.json").write_text(json.dumps([out, err, time.time()]))

    once(folder, run)
    return Whole(folder / "small.yaml", folder / "data", *json.loads((folder / "printed.json").read_text()))


@pytest.fixture(scope="module")
def bandana(prefect_server):
    """Runs a command in this process, with the shared server: seconds of imports less than in a process of its own."""
    from typer.testing import CliRunner

    from bandana.flows.cli import app

    def run(*words):
        before = dict(os.environ)
        try:
            return CliRunner().invoke(app, [str(word) for word in words])
        finally:
            gc.unfreeze()
            gc.enable()
            os.environ.clear()
            os.environ.update(before)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bandana.flows.running.interrupt.stop_at_once_on_interrupt", lambda _: None)  # signals stay pytest's
        yield run


@pytest.fixture
def counts(monkeypatch):
    """Counts plans that are derived, and environments that are built, in this process."""
    from bandana.flows.plan import plan
    from bandana.flows.problems.environment import Environment

    numbers = Counter()

    def counted(owner, name, what):
        whole = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *given: numbers.update([what]) or whole(*given))

    counted(plan, "_listed", "plans")
    counted(Environment, "__init__", "environments")
    return numbers


@pytest.fixture
def free_port():
    """A port of the loopback interface on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
