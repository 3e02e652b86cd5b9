"""Every documented line that starts something which stays: read from the pages and from service files, and started here.

A line is known by what it starts, wherever it stands. A program that no test knows fails a test, so that a page cannot bring
in a server unseen.
"""

from __future__ import annotations

import re
import secrets
import shlex
import socket
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import yaml
from documentation import ROOT, blocks, pages
from listening import Terminals, listening

SHELLS = ("", "sh", "bash", "shell", "console")
STAYS = {
    "prefect server": r"prefect server start\b",
    "prefect worker": r"prefect worker start\b",
    "dask scheduler": r"dask[ -]scheduler\b",
    "dask worker": r"dask[ -](?:worker|nanny)\b",
    "mlflow server": r"(?:python\S* -m )?(?:mlflow|bandana\.flows\.tracking\.team_server) (?:server|ui)\b",
    "bandana serve": r"(?:python\S* -m )?bandana serve\b",
    "bandana ui": r"(?:python\S* -m )?bandana ui\b",
}
ENDS = frozenset({
    "[", "apt", "apt-get", "bandana", "cat", "cd", "chmod", "chown", "cmp", "cosign", "cp", "createdb",
    "createuser", "crontab", "curl", "cut", "date", "dask", "dd", "diff", "do", "docker", "done", "dropdb",
    "dropuser", "echo", "else", "exit", "export", "fi", "find", "for", "git", "grep", "gzip", "head", "id", "if",
    "install", "journalctl", "jq", "kill", "kubectl", "ln", "ls", "make", "mkdir", "mlflow", "mv", "nix", "openssl",
    "pg_dump", "pg_dumpall", "pg_restore", "pip", "podman", "prefect", "printf", "psql", "pwd", "python", "python3",
    "python3.11", "read", "rm", "runuser", "scp", "secret", "sed", "set", "sha256sum", "sleep", "sort", "source",
    "sqlite3", "ssh", "su", "sudo", "systemctl", "tail", "tar", "tee", "test", "then", "time", "touch", "trap",
    "true", "umask", "uname", "unzip", "useradd", "wait", "while", "xargs", ".", ":", "{", "}", "(", ")",
})  # fmt: skip
"""Programs that end by themselves, or start nothing on this machine that is not listed elsewhere."""
MODULES = (
    "bandana", "bandana.ready", "docs.figures", "mkdocs", "mlflow", "mlflow.server.auth", "mlflow.store", "pip", "pytest",
    "venv",
)  # fmt: skip
"""Modules that end; those of `benchmarks` do too."""
_PORT = re.compile(r"\b(?:4200|5000|5432|8786|8787)\b")


class Line(NamedTuple):
    """A documented command, without what it reads from the lines around it."""

    page: str
    words: str
    kind: str | None

    def __str__(self) -> str:
        return f"{self.page}: {self.words}"


@cache
def commands() -> tuple[Line, ...]:
    """Every command of every shell block of every page, and what service files start."""
    return tuple(_commands())


def _commands() -> Iterator[Line]:
    for path in pages():
        for block in blocks(path.read_text(encoding="utf-8")):
            if block.language in SHELLS and not block.mark.startswith("file:"):
                for words in _commands_of(block.body, is_console=block.language == "console"):
                    yield _line(path, words)
    for path in sorted((ROOT / "deploy").rglob("*.service")):
        for found in re.findall(r"^ExecStart=(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE):
            for words in _commands_of(found, is_console=False):
                yield _line(path, words)


def _line(path: Path, words: str) -> Line:
    plain = re.sub(r"^(?:\S*/)?bin/", "", words)
    plain = re.sub(r"^/\S*/(?=(?:bandana|mlflow|prefect|dask|python[0-9.]*)\b)", "", plain)
    kind = next((name for name, start in STAYS.items() if re.match(start, plain)), None)
    return Line(str(path.relative_to(ROOT)), plain, kind)


def _commands_of(body: str, *, is_console: bool) -> Iterator[str]:
    body = re.sub(r"<<'?(\w+)'?.*?\n.*?^\1$", "", body.replace("\\\n", " "), flags=re.MULTILINE | re.DOTALL)
    if is_console:
        body = "\n".join(line[2:] for line in body.splitlines() if line.startswith("$ "))
    quoted = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
    kept: list[str] = []

    def hide(found: re.Match[str]) -> str:
        kept.append(found.group())
        return f"\x00{len(kept) - 1}\x00"

    for line in re.sub(quoted, hide, body).splitlines():
        for part in re.split(r"&&|\|\||;|\|", re.sub(r"(?:^|\s)#.*$", "", line)):
            words = re.sub(r"\x00(\d+)\x00", lambda found: kept[int(found[1])], part).strip()
            words = re.sub(r"^(?:[A-Za-z_][A-Za-z0-9_]*=(?:'[^']*'|\"(?:\\.|[^\"])*\"|\$\([^)]*\)|\S)*\s*)+", "", words)
            words = re.sub(r"^(?:do|then|else|exec|nohup|time|sudo)\s+", "", words).strip()
            if re.match(r"(?:/bin/)?(?:ba)?sh -c ", words):  # a shell in a shell, as service files have it
                yield from _commands_of(shlex.split(words)[2].replace("$$", "$"), is_console=False)
            elif words:
                yield words


def unknown() -> list[Line]:
    """Commands of which no test knows whether they stay."""
    found = [line for line in commands() if line.kind is None]
    return [line for line in found if not _ends(line.words)]


def _ends(words: str) -> bool:
    if module := re.match(r"python[0-9.]* -m (\S+)", words):
        return module[1].startswith("benchmarks") or module[1] in MODULES
    return _program(words) in ENDS


def _program(words: str) -> str:
    first = re.split(r"[\s(]", words.lstrip("("), maxsplit=1)[0]
    return Path(first).name if "/" in first else first or "("


def staying() -> list[Line]:
    """Commands that stay, each once."""
    found: dict[str, Line] = {}
    for line in commands():
        if line.kind is not None:
            found.setdefault(re.sub(r"\s+", " ", line.words), line)
    return list(found.values())


class Place:
    """A folder in which documented lines are started as they stand, but for their ports and the names of their files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports: dict[str, int] = {}
        probes = {name: socket.create_server(("127.0.0.1", 0)) for name in ("4200", "5000", "5432", "8786", "8787")}
        for name, probe in probes.items():
            self.ports[name] = probe.getsockname()[1]
            probe.close()
        login = f"bandana:{secrets.token_urlsafe(16)}"
        api = f"http://127.0.0.1:{self.ports['4200']}"
        (folder / "basic_auth.ini").write_text((ROOT / "mlflow" / "basic_auth.ini").read_text())
        settings = {
            "DO_NOT_TRACK": "true", "MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false", "PREFECT_SERVER_API_AUTH_STRING": login,
            "PREFECT_API_AUTH_STRING": login, "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": api,
            "MLFLOW_BACKEND_STORE_URI": f"sqlite:///{folder}/server.db", "MLFLOW_ARTIFACTS_DESTINATION": f"{folder}/files",
            "MLFLOW_AUTH_CONFIG_PATH": f"{folder}/basic_auth.ini", "MLFLOW_FLASK_SERVER_SECRET_KEY": secrets.token_hex(16),
            "MLFLOW_AUTH_ADMIN_PASSWORD": secrets.token_urlsafe(16), "OPENBLAS_NUM_THREADS": "1", "BANDANA_WORKERS": "1",
        }  # fmt: skip
        self.settings, self.client = settings, {"PREFECT_API_URL": f"{api}/api"}

    def start(self, line: Line, terminals: Terminals) -> int:
        """Starts a line, and what it needs from the same machine; the number of its process."""
        words = _PORT.sub(lambda found: str(self.ports[found.group()]), line.words)
        words = words.replace("--nworkers auto", "--nworkers 2")
        settings = dict(self.settings)
        if line.kind == "dask worker":
            self._start_first("dask scheduler", terminals)
        is_client = line.kind == "prefect worker" or "--server" in words
        if is_client:
            self._start_first("prefect server", terminals)
            settings |= self.client
        if line.kind == "prefect worker":
            pool = shlex.split(words)[shlex.split(words).index("--pool") + 1]
            terminals.run(f"{_exports(settings)}\nprefect work-pool create {shlex.quote(pool)} --type process")
            words = re.sub(r"--type \S+", "--type process", words)
        if line.kind in ("bandana serve", "bandana ui"):
            words = self._with_files(words)
            if "--port" not in words and not is_client:
                words += f" --port {self.ports['4200' if line.kind == 'bandana serve' else '5000']}"
        begin = _exports(settings)
        if line.kind in ("dask scheduler", "dask worker"):
            begin = self._with_keys(terminals)
        return terminals.open(f"{begin}\n{words}")

    def _start_first(self, kind: str, terminals: Terminals) -> None:
        """Starts what a line needs: the documented line of that kind, until it listens."""
        needed = next(line for line in staying() if line.kind == kind)
        place = self.start(needed, terminals)
        terminals.wait(lambda: listening(place))
        if kind == "prefect server":
            terminals.run(f"{_exports(self.settings | self.client)}\nprefect work-pool ls >/dev/null")

    def _with_files(self, words: str) -> str:
        """The words with a small spec in place of each one that they name."""
        found = []
        for i, word in enumerate(shlex.split(words)):
            if word.endswith(".yaml"):
                tree = yaml.safe_load((ROOT / "experiments" / "smoke.yaml").read_text(encoding="utf-8"))
                tree["name"] = f"small-{i}"
                (self.folder / f"{i}.yaml").write_text(yaml.safe_dump(tree))
                word = f"{i}.yaml"
            found.append(word)
        return shlex.join(found)

    def _with_keys(self, terminals: Terminals) -> str:
        """The page's lines that every terminal of a cluster starts with, after those that make its certificate once."""
        text = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
        marked = {block.mark: block.body for block in blocks(text) if block.mark in ("secrets", "clients")}
        if not (self.folder / "bandana-keys").exists():
            terminals.run(marked["secrets"])
        return f"cd {shlex.quote(str(self.folder / 'bandana-keys'))}\n{marked['clients']}"


def _exports(settings: dict[str, str]) -> str:
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in settings.items())
