"""The people of the page for a team, each with a home, a shell and a place on one machine that no test touches beyond."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from documentation import ROOT
from http_answers import answering
from listening import family
from postgres_server import PostgresServer, free_port, programs

PERSONS = ("postgres", "bandana", "ann", "bob", "eve")
_LONGEST = 400.0


class Hook:
    """A webhook on the loopback interface, and when it was sent what."""

    def __init__(self) -> None:
        self.sent: list[tuple[float, dict[str, str]]] = []
        sent = self.sent

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                sent.append((time.time(), json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
                self.send_response(200)
                self.end_headers()

        self._open = ExitStack()
        self.url = f"{self._open.enter_context(answering(Handler))}/bandana"

    def wait(self, n: int, seconds: float) -> None:
        """Waits until it was sent `n` messages."""
        deadline = time.monotonic() + seconds
        while len(self.sent) < n:
            assert time.monotonic() < deadline, self.sent
            time.sleep(0.2)

    def close(self) -> None:
        self._open.close()


class Machine:
    """One machine: PostgreSQL on a Unix socket, a folder for /srv/bandana, homes, and what runs in terminals."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.place = folder, folder / "srv"
        self.hook, self.ports = Hook(), {"5000": free_port(), "4200": free_port()}
        self.terminals: dict[str, tuple[str, str, subprocess.Popen[bytes]]] = {}
        self.database = PostgresServer(is_local=True)
        self.database.start()
        for person in PERSONS:
            self.home(person).mkdir(parents=True)
            (self.home(person) / ".profile").write_text(f'export PATH="{programs()}:$PATH"\n')
        source = self.place / "source"
        source.mkdir()
        for path in ROOT.iterdir():
            if path.name not in ("deploy", "mlflow", ".git"):
                (source / path.name).symlink_to(path)
        for name in ("deploy", "mlflow"):
            shutil.copytree(ROOT / name, source / name)
            for path in (source / name).rglob("*"):
                if path.is_file():
                    path.write_text(self.here(path.read_text(encoding="utf-8")), encoding="utf-8")
        (self.place / "venv").symlink_to(sys.prefix)

    def here(self, text: str) -> str:
        """The text with this machine's places, ports and webhook instead of the page's."""
        for name, port in self.ports.items():
            text = text.replace(f":{name}", f":{port}").replace(f"--port {name}", f"--port {port}")
        text = text.replace("/srv/bandana", str(self.place)).replace("/var/run/postgresql", str(self.database.folder))
        return text.replace("https://hooks.example.org/bandana", self.hook.url)

    def home(self, person: str) -> Path:
        return self.place if person == "bandana" else self.folder / "home" / person

    def _start(self, person: str, script: str, output: int, errors: int) -> subprocess.Popen[bytes]:
        names = ("LANG", "LC_ALL", "TZ", "TMPDIR")
        kept = {name: os.environ[name] for name in names if name in os.environ}
        environment = {
            **kept, "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.home(person)), "USER": person,
            "LOGNAME": person,
            "PYTHONPATH": str(ROOT), "PGHOST": str(self.database.folder), "COLUMNS": "150", "OPENBLAS_NUM_THREADS": "1",
        }  # fmt: skip
        if person in ("postgres", "bandana"):  # as the operating system would name them
            environment["PGUSER"] = person
        return subprocess.Popen(
            ["bash", "-l", "-c", f"set -e\n{self.here(script)}"], cwd=self.home(person), env=environment,
            stdin=subprocess.DEVNULL, stdout=output, stderr=errors, start_new_session=True,
        )  # fmt: skip

    def run(self, person: str, script: str, code: int = 0) -> str:
        """Runs lines as a person, and returns what they print."""
        process = self._start(person, script, subprocess.PIPE, subprocess.STDOUT)
        try:
            printed = process.communicate(timeout=_LONGEST)[0].decode()
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        assert process.returncode == code, f"{person}: {script}\n{printed}"
        assert "Traceback" not in printed, printed
        return printed

    def open(self, name: str, person: str, script: str) -> None:
        """Starts lines whose last one stays, in a terminal of that name."""
        *before, last = script.replace("\\\n", " ").strip().splitlines()
        with self.log(name).open("ab") as log:
            process = self._start(person, "\n".join([*before, f"exec {last}"]), log.fileno(), log.fileno())
        self.terminals[name] = (person, script, process)

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def said(self, name: str) -> str:
        return self.log(name).read_text(errors="replace")

    def pid(self, name: str) -> int:
        return self.terminals[name][2].pid

    def stop(self) -> None:
        """Ends what runs in terminals, the last one first, as a service manager would."""
        for name in reversed(self.terminals):
            process = self.terminals[name][2]
            members = family(process.pid)
            if process.poll() is None:
                process.terminate()
                process.wait(60)
            for member in members:
                if member.is_running():
                    member.kill()

    def close(self) -> None:
        self.stop()
        self.database.stop()
        self.database.remove()
        self.hook.close()
