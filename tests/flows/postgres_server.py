"""A PostgreSQL server of its own for a test: Debian's programs, a temporary folder, a free port on loopback."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any

PASSWORD = "tr&cking/s3cret"
QUOTED = "tr%26cking%2Fs3cret"


def why_not() -> str | None:
    """Why no server can be had here, or None."""
    if programs() is None:
        return "no PostgreSQL server here (Debian: apt-get install postgresql)"
    if os.geteuid() == 0 and owner() is None:
        return "PostgreSQL does not run as root, and there is no user `postgres`"
    return None


def programs() -> Path | None:
    """The folder of initdb and pg_ctl; Debian keeps them off the path, one folder a version."""
    if found := shutil.which("pg_ctl"):
        return Path(found).resolve().parent
    candidates = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/pg_ctl")]
    return max(candidates, key=lambda path: int(path.parent.name), default=None)


def owner() -> pwd.struct_passwd | None:
    """Who the server runs as when the tests run as root."""
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class PostgresServer:
    """Started by `start`, stopped by `stop`; passwords are asked for, as on a real one.

    With `is_local` it has a Unix socket alone, named like the usual one, and takes whoever runs the tests for any role that
    the operating system would have vouched for (`peer`).
    """

    def __init__(self, is_local: bool = False) -> None:
        # Not pytest's folder: only its owner may enter that one.
        self.folder = Path(tempfile.mkdtemp(prefix="bandana-pg-"))
        self.port = free_port()
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        if os.geteuid() == 0:
            account = owner()
            assert account is not None
            for path in (self.folder, secret):
                os.chown(path, account.pw_uid, account.pw_gid)
        self._run("initdb", "-D", self._data, "-U", "postgres", "-A", "scram-sha-256", f"--pwfile={secret}", "-N")
        self._is_local = is_local
        if is_local:
            me = pwd.getpwuid(os.geteuid()).pw_name
            (self.folder / "data" / "pg_hba.conf").write_text("local all all peer map=team\n")
            names = "".join(f"team {me} {role}\n" for role in ("postgres", "bandana"))
            (self.folder / "data" / "pg_ident.conf").write_text(names)

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    def start(self) -> None:
        place = "-c listen_addresses= -p 5432" if self._is_local else f"-c listen_addresses=127.0.0.1 -p {self.port}"
        options = f"{place} -k {self.folder} -c fsync=off"
        self._run("pg_ctl", "-D", self._data, "-w", "-l", str(self.folder / "log"), "-o", options, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", self._data, "-m", "immediate", "-w", "stop")

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def uri(self, database: str, password: str = QUOTED) -> str:
        return f"postgresql://postgres:{password}@127.0.0.1:{self.port}/{database}"

    def connect(self, database: str = "postgres") -> Any:
        import psycopg2

        connection = psycopg2.connect(host="127.0.0.1", port=self.port, user="postgres", password=PASSWORD, dbname=database)
        connection.autocommit = True
        return connection

    def execute(self, statement: str, database: str = "postgres") -> list[Any]:
        connection = self.connect(database)
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement)
                return list(cursor.fetchall()) if cursor.description else []
        finally:
            connection.close()

    def _run(self, program: str, *arguments: str) -> None:
        folder = programs()
        assert folder is not None
        account = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
        # A file, no pipe: the server would keep a pipe open.
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(
                [str(folder / program), *arguments], stdout=output, stderr=output, cwd=self.folder, check=False, timeout=120,
                **account,
            )  # fmt: skip
            output.seek(0)
            assert done.returncode == 0, output.read().decode()
