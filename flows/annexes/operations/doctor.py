"""Findings on an installation and its data folder, what is wrong or soon will be: nothing is changed or started."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from bandana import configuration, layers
from bandana.flows.cells.audits import evidence_of
from bandana.flows.cells.play import is_played
from bandana.flows.folder import scratch
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.sqlite_file import refusal
from bandana.flows.folder.store import Store, write_whole
from bandana.flows.keys import checkout
from bandana.flows.keys.versions import versions
from bandana.flows.own.data import SECRET
from bandana.flows.plan.plan import Plan
from bandana.flows.servers.loopback import why_unusable
from bandana.flows.servers.prefect_health import DATABASE, damage, unanswered
from bandana.flows.servers.temporary_server import unfinished
from bandana.flows.spec.spec import load_spec
from bandana.flows.texts.mistakes import SpecError
from bandana.flows.tracking.store.address import TrackingAddress
from bandana.flows.tracking.store.client import TrackingStore, probe
from bandana.flows.tracking.store.errors import TrackingError

_PORTS = {4200: "bandana serve", 5000: "bandana ui"}
_SHOWN = ("prefect", "mlflow", "numpy", "scipy", "numba")
_LITTLE, _NONE = 5 << 30, 128 << 20


class State(StrEnum):
    """Severity of a finding."""

    GOOD = "good"
    NOTE = "note"
    BAD = "BAD"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; `what` names it, `words` say what was found, and what to do if anything."""

    what: str
    state: State
    words: str


def examine(folder: DataFolder | None) -> list[Finding]:
    """Looks at versions, ports, servers and, of the data folder, disk, databases, unfinished files, locks and suites.

    Args:
      folder: None where there is no data folder yet.
    """
    findings = [*_versions(), *_settings(), *_ports(), *_prefect()]
    if folder is None:
        return [*findings, Finding("data folder", State.NOTE, "there is none yet; the first command makes it")]
    for look in (_disk, _permissions, _databases, _results, _tracking, _unfinished, _locks, _suites):
        findings += look(folder)
    return findings


def _versions() -> Iterator[Finding]:
    code = checkout.checkout()
    commit = "no checkout" if code is None else f"commit {code.commit[:12]}{'' if code.is_clean else ', with changes'}"
    python = ".".join(map(str, sys.version_info[:3]))
    yield Finding("bandana", State.GOOD, f"sources {checkout.sources()[:12]}, {commit}; Python {python}")
    wrong = list(_broken_requirements())
    shown = ", ".join(f"{name} {number}" for name, number in versions(*_SHOWN).items())
    if wrong:
        yield Finding("packages", State.BAD, f"{'; '.join(wrong)}: install as README.md says")
    else:
        yield Finding("packages", State.GOOD, f"{shown}; all that Bandana needs is installed as it asks")


def _broken_requirements() -> Iterator[str]:
    from packaging.requirements import Requirement

    try:
        lines = requires(layers.DISTRIBUTION) or []
    except PackageNotFoundError:
        yield f"{layers.DISTRIBUTION} is not installed"
        return
    for line in lines:
        requirement = Requirement(line)
        marker = requirement.marker
        extras = [extra for extra in ("", *layers.EXTRAS) if marker is None or marker.evaluate({"extra": extra})]
        try:
            installed = version(requirement.name)
        except PackageNotFoundError:
            if "" in extras:
                yield f"{requirement.name} is missing"
            continue
        if not extras:
            continue
        if not requirement.specifier.contains(installed, prereleases=True):
            yield f"{requirement.name} {installed} is not {requirement.specifier}"


def _settings() -> Iterator[Finding]:
    if (settings := configuration.read()) is not None:
        yield Finding("settings", State.GOOD, str(settings))


def _ports() -> Iterator[Finding]:
    for port, user in _PORTS.items():
        why = why_unusable(port)
        words = (
            f"free, for `{user}`"
            if why is None
            else f"{why}: `{user}` runs, or another program; `{user} --port` takes another one"
        )
        yield Finding(f"port {port}", State.GOOD if why is None else State.NOTE, words)


def _prefect() -> Iterator[Finding]:
    if address := os.environ.get("PREFECT_API_URL", "").rstrip("/"):
        why = unanswered(f"{address}/health")
        words = "answers" if why is None else f"does not answer ({why}): start it, or clear PREFECT_API_URL"
        yield Finding(f"Prefect at {address}", State.GOOD if why is None else State.BAD, words)


def _disk(folder: DataFolder) -> Iterator[Finding]:
    free = shutil.disk_usage(folder.root).free
    sizes = {place.name: _size(place) for place in sorted(folder.root.iterdir()) if place.is_dir()}
    parts = ", ".join(f"{name} {size / 2**20:,.0f}" for name, size in sizes.items() if size >= 1 << 19)
    words = f"{free / 2**30:,.1f} GiB free; {sum(sizes.values()) / 2**20:,.0f} MiB are used{f' ({parts})' if parts else ''}"
    state = State.BAD if free < _NONE else State.NOTE if free < _LITTLE else State.GOOD
    advice = "" if state is State.GOOD else ": free some space, for example with `bandana prune --keep 30d`"
    yield Finding(f"disk of {folder.root}", state, words + advice)


def _size(place: Path) -> int:
    """Bytes of the files below a folder, each counted once however many names it has."""
    seen: dict[tuple[int, int], int] = {}
    for path in place.rglob("*"):
        try:
            about = path.lstat()
        except OSError:
            continue  # it was removed meanwhile
        if not path.is_dir():
            seen[about.st_dev, about.st_ino] = about.st_size
    return sum(seen.values())


def _databases(folder: DataFolder) -> Iterator[Finding]:
    places = [
        folder.prefect / DATABASE,
        folder.root / "mlflow" / "mlflow.db",
        *sorted((folder.root / "books").glob("*.sqlite")),
    ]
    for path in places:
        if path.exists():
            why = damage(path)
            advice = (
                "restore it from a copy" if path.parent.name == "books" else "move it away; the next command makes a new one"
            )
            words = "whole" if why is None else f"damaged ({why}): {advice}"
            state = State.GOOD if why is None else State.BAD
            if why is None and path.name == DATABASE:
                state, words = _written(path)
            yield Finding(str(path.relative_to(folder.root)), state, words)


def _written(path: Path) -> tuple[State, str]:
    """Tests if Prefect's database can be read and written, and says what to do if not."""
    if unfinished(path.parent).exists():
        return State.NOTE, "its first start was interrupted; the next one lays out its tables anew"
    reason = refusal(path, "alembic_version")
    if reason is None:
        return State.GOOD, "whole; it can be read and written"
    if "no such table" in reason:
        return State.NOTE, "it has no tables yet; the next run lays them out"
    return State.BAD, f"it cannot be written ({reason}): check its permissions and its disk, and what else has it open"


def _permissions(folder: DataFolder) -> Iterator[Finding]:
    """Who else may read the folder: its results are computed from private rows if there is a secret or a book."""
    mode = stat.S_IMODE(folder.root.stat().st_mode)
    if not mode & 0o055:
        yield Finding("permissions", State.GOOD, f"the data folder is for its owner alone (mode {mode:04o})")
    elif (folder.root / SECRET).exists() or (folder.root / "books").is_dir():
        words = f"other users may read results on private data (mode {mode:04o}): `chmod 700 {folder.root}`"
        yield Finding("permissions", State.NOTE, words)
    else:
        yield Finding("permissions", State.GOOD, f"other users may look in (mode {mode:04o}); no private data was used yet")


def _results(folder: DataFolder) -> Iterator[Finding]:
    """Reads one result of each kind, and writes a file and removes it."""
    place = folder.results if folder.results.is_dir() else folder.root
    trial = place / f"{scratch.prefix('doctor')}{scratch.SUFFIX}"
    try:
        for path in (next(kind.glob("*.npz"), None) for kind in folder.results.glob("*/")):
            if path is not None:
                path.read_bytes()
        write_whole(trial, b"doctor")
        whole = trial.read_bytes() == b"doctor"
        trial.unlink()
    except OSError as error:
        words = f"cannot be read or written ({error.strerror}: {error.filename}): check its permissions and its disk"
        yield Finding("results", State.BAD, words)
    else:
        words = "can be read and written" if whole else "the disk returns other bytes than were written: check it"
        yield Finding("results", State.GOOD if whole else State.BAD, words)


def _tracking(folder: DataFolder) -> Iterator[Finding]:
    try:
        words = probe(TrackingStore(TrackingAddress.chosen(folder.root), folder.root))
    except (TrackingError, SpecError) as error:
        yield Finding("MLflow", State.BAD, " ".join(str(error).split()))
    else:
        yield Finding("MLflow", State.GOOD, words)


def _unfinished(folder: DataFolder) -> Iterator[Finding]:
    left = scratch.left_over(place for place in folder.root.iterdir() if place.is_dir() and place != folder.prefect)
    if left:
        yield Finding("unfinished files", State.NOTE, f"{len(left)} of processes that ended; `bandana prune` removes them")
    else:
        yield Finding("unfinished files", State.GOOD, "none")


def _locks(folder: DataFolder) -> Iterator[Finding]:
    """Locks that somebody holds: whoever dies lets go of his, so that none is ever stale."""
    files = [folder.prefect / "server.lock", *sorted((folder.root / "mlflow" / "locks").glob("*.lock"))]
    held = [str(path.relative_to(folder.root)) for path in files if path.exists() and _is_held(path)]
    words = (
        f"{len(held)} held by a command that runs: {', '.join(held[:5])}" if held else "none is held, and none can be stale"
    )
    yield Finding("locks", State.NOTE if held else State.GOOD, words)


def _is_held(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _suites(folder: DataFolder) -> Iterator[Finding]:
    store = Store(folder.results)
    parent = folder.suite("x").parent
    for place in sorted(parent.iterdir()) if parent.is_dir() else ():
        if (place / "spec.yaml").exists():
            yield _suite(place, folder, store)


def _suite(place: Path, folder: DataFolder, store: Store) -> Finding:
    """Finding on what a rerun of a suite would compute again, by the present code and versions."""
    name = f"suite {place.name}"
    try:
        spec = load_spec(place / "spec.yaml")
        plan = Plan.of(spec, folder.root)
        blocks, private = plan.blocks(), plan.private
        missing = sum(not is_played(block, store) for block in blocks)
        audits = sum(not evidence_of(cell, store).exists() for cell in private)
    except (SpecError, OSError, ValueError) as error:
        return Finding(name, State.NOTE, f"cannot be read: {' '.join(str(error).split())[:300]}")
    if not missing and not audits:
        return Finding(name, State.GOOD, "nothing would be computed again")
    words = (
        f"{missing} of {len(blocks)} blocks and {audits} of {len(private)} audits are missing, or of other code or versions"
    )
    return Finding(name, State.NOTE, f"{words}; a rerun computes them")
