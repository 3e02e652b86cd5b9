"""Prefect's database and server: damage and silence are named in one line."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from http.server import BaseHTTPRequestHandler

import pytest
from http_answers import answering

from bandana.flows.commands.failures import explain
from bandana.flows.commands.options import FAILURE
from bandana.flows.running.interrupt import server_ended
from bandana.flows.servers import prefect_health
from bandana.flows.servers.prefect_health import DATABASE, ServerError, check_database, watch


@pytest.fixture
def database(tmp_path):
    path = tmp_path / DATABASE
    with closing(sqlite3.connect(path)) as opened:
        opened.execute("CREATE TABLE runs (name TEXT)")
        opened.executemany("INSERT INTO runs VALUES (?)", [(str(i) * 50,) for i in range(5000)])
        opened.commit()
    return path


def test_a_whole_database_an_empty_one_and_none_are_taken(database, tmp_path):
    check_database(tmp_path)
    database.write_bytes(b"")
    check_database(tmp_path)
    database.unlink()
    check_database(tmp_path)
    assert not database.exists()


def test_a_database_that_somebody_writes_is_taken(database, tmp_path):
    with closing(sqlite3.connect(database, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("BEGIN IMMEDIATE")
        check_database(tmp_path)


@pytest.mark.parametrize("damage", ["header", "page", "cut", "text"])
def test_a_damaged_database_is_named_in_one_line(database, tmp_path, damage):
    content = bytearray(database.read_bytes())
    match damage:
        case "header":
            content[3] ^= 1
        case "page":
            content[4096 : 4096 * 3] = bytes(range(256)) * 32
        case "cut":
            del content[len(content) // 2 + 100 :]
        case "text":
            content = bytearray(b"not a database at all")
    database.write_bytes(content)
    with pytest.raises(ServerError) as caught:
        check_database(tmp_path)
    message, code = explain(caught.value)
    assert code == FAILURE
    assert "\n" not in message
    assert message.startswith(f"Prefect's database {database} is damaged (")
    assert "move it away and run the command again; it holds only the history of flow runs" in message


def test_a_server_that_ended_over_a_damaged_database_is_told_so(tmp_path):
    home = tmp_path / "prefect"
    home.mkdir()
    (home / DATABASE).write_bytes(b"not a database")
    assert f"{home / DATABASE} is damaged" in server_ended("the server ended with code 1", tmp_path)


class _Health(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(401)
        self.end_headers()


def test_a_server_that_goes_away_is_told_once_and_one_that_never_answered_is_not(monkeypatch):
    monkeypatch.setattr(prefect_health, "_PAUSE", 0.05)
    monkeypatch.setattr(prefect_health, "_PATIENCE", 0.3)
    told, is_told = [], threading.Event()

    def ended(said):
        told.append(said)
        is_told.set()

    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    watch(lambda said: told.append(f"never: {said}"))
    with answering(_Health) as url:
        address = f"{url}/api"
        monkeypatch.setenv("PREFECT_API_URL", address)
        watch(ended)
        assert not is_told.wait(1.0)
    assert is_told.wait(60)
    time.sleep(0.3)
    assert told == [f"Prefect's server at {address} does not answer any more (Connection refused): start it again"]


_CHILD = """
import subprocess, sys, time
from bandana.flows.running.processes import end_with
import os
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
end_with(os.getppid())
print(os.getpid(), child.pid, flush=True)
time.sleep(600)
"""
_PARENT = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', sys.argv[1]]); time.sleep(600)"


def test_a_run_ends_with_the_service_that_was_killed():
    parent = subprocess.Popen([sys.executable, "-c", _PARENT, _CHILD], stdout=subprocess.PIPE, text=True)
    run, child = map(int, parent.stdout.readline().split())
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 60
    try:
        while _runs(run) or _runs(child):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        parent.stdout.close()
        for pid in (run, child):
            if _runs(pid):
                os.kill(pid, signal.SIGKILL)


def _runs(pid):
    import psutil

    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
