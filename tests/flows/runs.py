"""Whole commands in processes of their own: what they started, and what they ended with."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from small_spec import SMALL

from bandana.audits.contents import numbers_sha256
from bandana.flows.folder.journal import Journal
from bandana.flows.folder.scratch import SUFFIX
from bandana.flows.folder.settings import DataFolder

# Seconds of work in blocks and in an audit with all its controls, small enough to be done forty times.
KILLABLE: dict[str, Any] = {
    "horizon": 5000,
    "replications": 8,
    "block_size": 2,
    "audit": {"rounds": 8, "replays": 2000, "examples": 5},
    "report": {"formats": ["html", "json"]},
}
PROCESSES = ("--executor", "processes", "--workers", "2")


def killable(folder: Path, **changes: Any) -> Path:
    """The spec of a small experiment with a benchmark, an audit and a report."""
    path = folder / "small.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(SMALL), **KILLABLE, **changes}, sort_keys=False))
    return path


def start(spec, data, *options, command="run", audit=True, server=None):
    """A command of its own, in a session of its own; with a Prefect server of its own unless there is one."""
    words = [command, str(spec), *(["--audit"] if audit and command == "run" else []), *(options or PROCESSES)]
    return subprocess.Popen(
        [sys.executable, "-m", "bandana", *words, "--data", str(data)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, **(server or {})},
    )  # fmt: skip


class Whole(NamedTuple):
    """A run that nobody interrupted: its spec, its data folder, what it printed, and when it ended."""

    spec: Path
    data: Path
    out: str
    err: str
    ended: float


class Member(NamedTuple):
    pid: int
    started: str
    command: str
    parent: int


def workers(members: list[Member]) -> list[Member]:
    """Workers of a pool: forked from a fork server, which has the same command line, or fresh interpreters."""
    forking = {member.pid for member in members if "multiprocessing.forkserver" in member.command}
    return [member for member in members if member.parent in forking or "multiprocessing.spawn" in member.command]


def family(pid: int) -> list[Member]:
    """What a process started, and what that started, without itself."""
    found, waiting = [], [pid]
    while waiting:
        parent = waiting.pop()
        try:
            listed = [path.read_text().split() for path in Path(f"/proc/{parent}/task").glob("*/children")]
        except OSError:
            continue
        for child in (int(child) for children in listed for child in children):
            if (started := _started(child)) is not None:
                found.append(Member(child, started, _command(child), parent))
                waiting.append(child)
    return found


def is_alive(member: Member) -> bool:
    return _started(member.pid) == member.started


def _started(pid: int) -> str | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def events_of(data: Path, suite: str = "small") -> list[tuple[str, float]]:
    """The journal: names and times."""
    journal = Journal(DataFolder(data).journal(suite))
    return [(event["event"], datetime.fromisoformat(event["time"]).timestamp()) for event in journal.read()]


def results_of(data: Path) -> dict[str, str]:
    """Every file of the store, whatever its name, and what it holds but for its provenance."""
    return {
        str(path.relative_to(data)): numbers_sha256(path) for path in sorted((data / "results").rglob("*")) if path.is_file()
    }


def report_of(data: Path, suite: str) -> dict[str, Any]:
    """The report but for times, and for hashes of files that hold times; those are held against the files here."""
    report = json.loads((data / "suites" / suite / "report.json").read_text())
    made, evidence = report["provenance"], report["evidence"]
    assert report.pop("created") == made["ended"] > made["began"]
    records = [made, *made["makers"], *(audit["provenance"] for audit in report["audits"])]
    assert all(made["began"] <= record["began"] <= record["ended"] <= made["ended"] for record in records)
    for record in records:
        del record["began"], record["ended"]
    for file in evidence["files"]:
        folder = data if file["path"].startswith("results/") else data / "suites" / suite
        path = folder / file["path"]
        assert (file.pop("sha256"), file["numbers"]) == (sha256(path.read_bytes()).hexdigest(), numbers_sha256(path))
    del evidence["sha256"]
    return dict(report)


def outcome(data: Path, suite: str = "small") -> dict[str, Any]:
    """All that a run ends with and that does not depend on when it ran."""
    return {
        "results": results_of(data),
        "runs": runs_of(data),
        "report": report_of(data, suite),
        "files of the suite": sorted(str(path.relative_to(data)) for path in (data / "suites").rglob("*") if path.is_file()),
        "unfinished files": sorted(str(path) for path in data.rglob(f"*{SUFFIX}")),
        "databases": {name: _check(data / name) for name in ("mlflow/mlflow.db", "prefect/prefect.db")},
    }


def runs_of(data: Path) -> list[dict[str, Any]]:
    """Every MLflow run that is not deleted: its state, tags, parameters, points and artifacts."""
    with closing(sqlite3.connect(data / "mlflow" / "mlflow.db")) as database:

        def rows(query: str, *values: str) -> list[Any]:
            return sorted(database.execute(query, values).fetchall())

        found = []
        for run, name, status, artifacts in rows("SELECT run_uuid, name, status, artifact_uri FROM runs"):
            tags = dict(rows("SELECT key, value FROM tags WHERE run_uuid = ?", run))
            folder = Path(artifacts.removeprefix("file://"))
            params = dict(rows("SELECT key, value FROM params WHERE run_uuid = ?", run))
            if tags["role"] == "suite":  # it is known by the files of evidence as they are, which hold times
                report = json.loads((folder / "report.json").read_text())
                assert params.pop("evidence") == report["evidence"]["sha256"]
                tags |= {"run_key": "", "bandana.content": ""}
            found.append(
                {
                    "name": name,
                    "status": status,
                    "tags": {k: tags.get(k) for k in ("suite", "role", "run_key", "current", "verdict", "bandana.content")},
                    "params": sorted(params.items()),
                    "points": rows("SELECT key, step, value, is_nan FROM metrics WHERE run_uuid = ?", run),
                    "latest": rows("SELECT key, step, value, is_nan FROM latest_metrics WHERE run_uuid = ?", run),
                    "artifacts": {
                        # A report holds the time when its results were computed.
                        str(path.relative_to(folder)): numbers_sha256(path) if path.suffix == ".npz" else ""
                        for path in sorted(folder.rglob("*"))
                        if path.is_file()
                    },
                }
            )
    return sorted(found, key=lambda run: (run["tags"]["role"], run["name"], run["tags"]["run_key"]))


def _check(database: Path) -> str:
    with closing(sqlite3.connect(database)) as opened:
        return str(opened.execute("PRAGMA integrity_check").fetchone()[0])
