"""Prefect's server for the time of one command: it starts while the command still imports, and ends when the command does.

Prefect would start one by itself, later: its client polls for minutes if that server dies, it outlives a client that was
killed, two commands may choose the same port, and it answers everybody. A server that the user named (PREFECT_API_URL, a
profile, a file with settings of Prefect in the working directory) is used instead.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

_HOST = "127.0.0.1"
_GRACE = 5.0
_LOG = "server.log"
_SETTINGS = {
    "PREFECT_UI_ENABLED": "0",
    "PREFECT_API_BLOCKS_REGISTER_ON_START": "false",  # nobody looks for them here
}
_ours: set[str] = set()
_SIGNS = {"prefect.toml": "", "pyproject.toml": "[tool.prefect", ".env": "PREFECT_"}
"""File of the working directory -> what it holds if it has settings of Prefect."""


def start(home: Path, ended: Callable[[str], None]) -> Path | None:
    """Starts the server, and points Prefect at it; call after `DataFolder.prepare`, before Prefect is imported.

    The server needs seconds to answer; its port listens at once, so that the first request waits and nobody polls.

    Args:
      home: PREFECT_HOME, where its database and its log lie.
      ended: called from a thread, with what the server said last, if it ends before this process does.

    Returns:
      where its database lies; None if another server is used.
    """
    if "prefect" in sys.modules or os.environ.get("PREFECT_API_URL"):
        return None
    if _is_configured(home):
        if _names_server():
            return None
        home = Path(os.environ.get("PREFECT_HOME", home))  # the user's settings hold for ours, which has a password
    process, settings = spawn(home)
    os.environ.update(settings)
    _ours.add(settings["PREFECT_API_URL"])
    stopping = threading.Event()

    def watch() -> None:
        code = process.wait()
        if not stopping.is_set():
            how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}: {last_line(home / _LOG)}"
            ended(f"Prefect's temporary server {how}")

    def stop() -> None:
        stopping.set()
        process.terminate()
        try:
            process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            process.kill()

    threading.Thread(target=watch, name="prefect-server", daemon=True).start()
    # Registered before Prefect is imported, and so called after Prefect has sent its last events.
    atexit.register(stop)
    return home


def spawn(home: Path) -> tuple[subprocess.Popen[bytes], dict[str, str]]:
    """A server's process, which ends with this one or with its standard input, and the settings of its clients.

    The settings are the address that it will answer at, and a login that lives in the environment of our processes alone.
    """
    # Here: the server itself, which runs this file, need not find the package.
    from bandana.flows.folder.private_files import make_file, make_folder, umask_in
    from bandana.flows.servers import login as logins

    make_folder(home)
    make_file(home / _LOG)
    login = logins.draw()
    with socket.create_server((_HOST, 0), backlog=128) as listening, (home / _LOG).open("ab") as sink:
        port = listening.getsockname()[1]
        # In a session of its own: Ctrl-C reaches the command alone. Its input ends with this process, however that ends.
        process = subprocess.Popen(
            [sys.executable, "-P", __file__, str(listening.fileno())],
            env={**os.environ, **_SETTINGS, **logins.server_settings(login, port), "PREFECT_HOME": str(home)},
            pass_fds=[listening.fileno()],
            stdin=subprocess.PIPE, stdout=sink, stderr=sink, start_new_session=True, umask=umask_in(home),
        )  # fmt: skip
        return process, {"PREFECT_API_URL": f"http://{_HOST}:{port}/api", logins.CLIENT: login}


@contextmanager
def without_heartbeats() -> Iterator[None]:
    """Flows on our own server send no heartbeats: nobody watches for them there, and each flow would end a second later."""
    from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

    if os.environ.get("PREFECT_API_URL") not in _ours:
        yield
        return
    with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
        yield


def _names_server() -> bool:
    """True if the user's settings name a server: Prefect reads them, in another process, as it cannot be imported here yet.

    Settings that it cannot read count as such: the command will import Prefect, which then says what is wrong with them.
    """
    program = "from prefect.settings import get_current_settings as found; print(found().api.url or '')"
    done = subprocess.run([sys.executable, "-c", program], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return done.returncode != 0 or bool(done.stdout.strip())


def _is_configured(home: Path) -> bool:
    if os.environ.get("PREFECT_PROFILE") or os.environ.get("PREFECT_HOME", str(home)) != str(home):
        return True
    texts = {name: Path(name).read_text("utf-8", "replace") for name in _SIGNS if Path(name).exists()}
    return any(_SIGNS[name] in text for name, text in texts.items())


def last_line(log: Path) -> str:
    """The last line of a server's log that says something."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")


def _serve(listening: int) -> None:
    """The server's own process."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    gc.disable()  # while it imports and lays out its tables: nothing of that is garbage
    import uvicorn
    from prefect.server.api.server import create_app

    class OneAtATime(uvicorn.Server):
        """Lays out its database, or finds it laid out, while no other server of this home does."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            with laying_out(Path(os.environ["PREFECT_HOME"])) as mark:
                await super().startup(sockets)
                if not self.should_exit:
                    mark.unlink(missing_ok=True)
            gc.freeze()
            gc.enable()

    config = uvicorn.Config(partial(create_app, ephemeral=True, final=True), factory=True, log_level="error", lifespan="on")
    OneAtATime(config).run([socket.socket(fileno=listening)])


def unfinished(home: Path) -> Path:
    """The mark beside a database of Prefect that was begun; it is removed once the server has laid out all tables."""
    return home / "prefect.db.unfinished"


@contextmanager
def laying_out(home: Path) -> Iterator[Path]:
    """Keeps other servers of a home waiting while one starts, and empties a database that a kill left half laid out.

    A few of Prefect's migrations commit halfway and cannot be repeated. A mark, which is yielded, stands beside a new
    database; the caller removes it once the server has started. A database that holds flows is never emptied.
    """
    database, mark = home / "prefect.db", unfinished(home)
    with open(home / "server.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not database.exists():
            mark.touch()
        elif mark.exists():
            with closing(sqlite3.connect(database)) as half, closing(sqlite3.connect(":memory:")) as empty:
                if not _holds_flows(half):
                    empty.backup(half)
        yield mark


def _holds_flows(database: sqlite3.Connection) -> bool:
    try:
        return database.execute("SELECT 1 FROM flow LIMIT 1").fetchone() is not None
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise
        return False


def _end_with_parent() -> None:
    os.read(0, 1)  # returns when the other end is closed: by its owner's end, whatever ended it
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
