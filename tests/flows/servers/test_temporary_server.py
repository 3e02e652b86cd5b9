"""Prefect's temporary server: where it is wanted, and that it never outlives the command."""

import fcntl
import re
import sqlite3
import time
import urllib.request
from contextlib import closing, suppress
from pathlib import Path

import pytest
from intruder import ask, is_refused, is_refused_a_stream

from bandana.flows.servers import temporary_server
from bandana.flows.servers.temporary_server import laying_out, spawn, start, unfinished


@pytest.fixture
def spawned(tmp_path, monkeypatch):
    """Homes of the servers that `start` started, in a working directory without files, before Prefect was imported."""
    found = []
    monkeypatch.chdir(tmp_path)
    for name in ("PREFECT_API_URL", "PREFECT_PROFILE", "PREFECT_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delitem(temporary_server.sys.modules, "prefect", raising=False)

    class StartedError(Exception):
        pass

    def spawning(home):
        found.append(home)
        raise StartedError

    monkeypatch.setattr(temporary_server, "spawn", spawning)

    def begin(home):
        with suppress(StartedError):
            start(home, found.append)
        return found

    return begin


def test_it_is_started_where_the_user_named_no_other(spawned, tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text('dependencies = ["prefect"]\n')
    (tmp_path / ".env").write_text("HOME_PAGE=1\n")
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "prefect"))
    assert spawned(tmp_path / "prefect") == [tmp_path / "prefect"]


def test_a_server_named_in_the_environment_is_used(spawned, tmp_path, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")
    assert spawned(tmp_path / "prefect") == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("prefect.toml", '[api]\nurl = "http://127.0.0.1:1/api"\n', marks=pytest.mark.nightly),
        ("pyproject.toml", '[tool.prefect]\napi.url = "http://127.0.0.1:1/api"\n'),
        pytest.param(".env", "PREFECT_API_URL=http://127.0.0.1:1/api\n", marks=pytest.mark.nightly),
        pytest.param(
            "elsewhere/profiles.toml",
            'active = "mine"\n[profiles.mine]\nPREFECT_API_URL = "http://127.0.0.1:1/api"\n',
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_a_server_named_in_a_file_is_used(spawned, tmp_path, monkeypatch, name, text):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    if name == "elsewhere/profiles.toml":
        monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "elsewhere"))
    assert spawned(tmp_path / "prefect") == []


@pytest.mark.parametrize("text", ['[logging]\nlevel = "INFO"\n', pytest.param("", marks=pytest.mark.nightly)])
def test_settings_that_name_no_server_hold_for_one_with_a_password(spawned, tmp_path, monkeypatch, text):
    """Prefect would start one that answers everybody."""
    (tmp_path / "prefect.toml").write_text(text)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "elsewhere"))
    assert spawned(tmp_path / "prefect") == [tmp_path / "elsewhere"]


@pytest.mark.nightly
def test_settings_that_prefect_cannot_read_are_left_to_it(spawned, tmp_path):
    (tmp_path / "prefect.toml").write_text('[api]\nrequest_timeout = "long"\n')
    assert spawned(tmp_path / "prefect") == []


def test_a_program_that_has_imported_prefect_keeps_its_settings(spawned, tmp_path, monkeypatch):
    monkeypatch.setitem(temporary_server.sys.modules, "prefect", temporary_server)
    assert spawned(tmp_path / "prefect") == []


def _waits_for_a_lock(process):
    """Whether the system has the process wait for another one's lock."""
    waiting = re.findall(r"-> FLOCK +ADVISORY +WRITE +(\d+) ", Path("/proc/locks").read_text())
    return str(process.pid) in waiting


@pytest.mark.slow
def test_its_first_answer_waits_for_it_and_it_ends_with_its_input(tmp_path):
    """It lays out no tables while another one of its home does."""
    with open(tmp_path / "server.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process, settings = spawn(tmp_path)
        while Path("/proc/locks").exists() and not _waits_for_a_lock(process):
            assert process.poll() is None
            assert not list(tmp_path.glob("*.db"))
            time.sleep(0.05)
        assert not list(tmp_path.glob("*.db"))
    address, login = settings["PREFECT_API_URL"], settings["PREFECT_API_AUTH_STRING"]
    with urllib.request.urlopen(f"{address}/health", timeout=240) as answer:
        assert answer.read() == b"true"
    assert not unfinished(tmp_path).exists()
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "server.log", *tmp_path.glob("prefect.db*"))} == {0o600}
    assert is_refused(address)
    assert is_refused_a_stream(address, login)
    assert ask(address, "/deployments/filter", {}, login=login).body == []
    password = login.partition(":")[2].encode()
    if (command := Path(f"/proc/{process.pid}/cmdline")).exists():
        assert b"temporary_server" in command.read_bytes()
        assert password not in command.read_bytes()
    process.stdin.close()
    process.wait(30)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if password in path.read_bytes()]
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"{address}/health", timeout=5)


@pytest.mark.nightly
def test_two_at_once_lay_out_one_database(tmp_path):
    """Each by itself would find the other's half of the tables, and end. In `make test`: one waits for the other's lock."""
    spawned = [spawn(tmp_path) for _ in range(2)]
    for process, settings in spawned:
        with urllib.request.urlopen(f"{settings['PREFECT_API_URL']}/health", timeout=240) as answer:
            assert answer.read() == b"true"
        assert process.poll() is None
    assert len({settings["PREFECT_API_AUTH_STRING"] for _, settings in spawned}) == 2
    for process, _ in spawned:
        process.stdin.close()
        process.wait(30)


def _tables(home):
    with closing(sqlite3.connect(home / "prefect.db")) as database:
        return [name for (name,) in database.execute("SELECT name FROM sqlite_master ORDER BY name")]


def _begin(home, flows):
    """A database of which a killed server laid out a part."""
    with laying_out(home) as mark, closing(sqlite3.connect(home / "prefect.db")) as database:
        assert mark.exists()
        database.executescript("CREATE TABLE alembic_version (version_num); CREATE TABLE flow (id);")
        database.executemany("INSERT INTO flow VALUES (?)", [(flow,) for flow in flows])
        database.commit()


def test_a_database_that_a_kill_left_half_laid_out_is_begun_anew(tmp_path):
    _begin(tmp_path, [])
    with laying_out(tmp_path) as mark:
        assert _tables(tmp_path) == []
        mark.unlink()
    assert not unfinished(tmp_path).exists()


def test_a_database_that_holds_flows_or_was_laid_out_is_never_emptied(tmp_path):
    _begin(tmp_path, ["mine"])
    with laying_out(tmp_path) as mark:
        assert _tables(tmp_path) == ["alembic_version", "flow"]
        mark.unlink()
    with closing(sqlite3.connect(tmp_path / "prefect.db")) as database:
        database.execute("DELETE FROM flow")
        database.commit()
    with laying_out(tmp_path) as mark:
        assert not mark.exists()
        assert _tables(tmp_path) == ["alembic_version", "flow"]


@pytest.mark.parametrize(
    ("settings", "files", "is_configured"),
    [
        ({}, {}, False),
        ({"PREFECT_HOME": "ours"}, {}, False),
        ({"PREFECT_HOME": "theirs"}, {}, True),
        ({"PREFECT_PROFILE": "work"}, {}, True),
        ({}, {"prefect.toml": ""}, True),
        ({}, {"pyproject.toml": "[tool.ruff]\n"}, False),
        ({}, {"pyproject.toml": "[tool.prefect.server]\n"}, True),
        ({}, {".env": "PREFECT_API_URL=1\n"}, True),
    ],
)
def test_settings_of_prefect_are_seen_where_they_may_stand(settings, files, is_configured, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("PREFECT_HOME", "PREFECT_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    for name, text in files.items():
        Path(name).write_text(text)
    assert temporary_server._is_configured(Path("ours")) == is_configured
