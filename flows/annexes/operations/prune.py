"""Removal from a data folder of old results, runs in MLflow and history of Prefect that nothing stands on."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bandana.flows.annexes.operations.prefect_history import History, old_history, remove_history
from bandana.flows.cells.audits import evidence_of
from bandana.flows.cells.play import BENCHMARK, BOOK
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import Store
from bandana.flows.plan.plan import Plan
from bandana.flows.spec.spec import load_spec
from bandana.flows.texts.json_text import JsonObject
from bandana.flows.texts.mistakes import SpecError
from bandana.flows.tracking.store.address import TrackingAddress
from bandana.flows.tracking.superseded import OldRun
from bandana.flows.tracking.tracker import Tracker

_UNITS = {"h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}
YOUNG, REPORTED, PRESENT, PAID, UNREADABLE = (
    "younger", "in a report", "of a suite's present spec", "paid for from a budget book", "of a suite that cannot be read",
)  # fmt: skip


@dataclass(frozen=True)
class Pruned:
    """Result of `prune`.

    Attributes:
      removed: files that are gone, or would be, and what they took of the disk.
      n_bytes: which the disk has again; a file that has a second name, such as a suite's evidence, frees nothing.
      kept: why others stay -> how many.
      notes: suites that cannot be read, with the reason.
    """

    removed: tuple[Path, ...]
    n_bytes: int
    kept: dict[str, int]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class PrunedRuns:
    """Result of `prune_runs`.

    Attributes:
      removed: superseded runs that are gone, or would be.
      kept: why others stay -> how many.
      is_purged: whether their rows and files are gone too, and not marked as deleted alone.
    """

    removed: tuple[OldRun, ...] = ()
    kept: Mapping[str, int] = field(default_factory=dict)
    is_purged: bool = True


def prune_runs(folder: DataFolder, keep: float, *, is_dry: bool = False) -> PrunedRuns:
    """Removes runs of cells from MLflow that others took the place of, and that ended more than `keep` seconds ago.

    Runs on a comparison page, of baselines and of suites' reports stay, and those with evidence that a report lists.

    Raises:
      SpecError: BANDANA_TRACKING_URI cannot be used.
      TrackingError: MLflow does not answer.
    """
    address = TrackingAddress.chosen(folder.root)
    if address.database is not None and not address.database.exists():
        return PrunedRuns()
    tracker = Tracker(folder.root, address)
    evidence = {str(file.get("sha256")) for file in _reported(folder)[0]}
    runs, kept = tracker.superseded.find((time.time() - keep) * 1000, evidence)
    is_purged = address.kind != "http" if is_dry else tracker.superseded.remove(runs)
    return PrunedRuns(tuple(runs), kept, is_purged)


def prune_history(folder: DataFolder, keep: float, *, is_dry: bool = False) -> History | None:
    """Removes flow runs and events from the data folder's Prefect that ended more than `keep` seconds ago.

    A server of your own has its own setting for that. None where there is nothing to read.

    Raises:
      ServerError: the database is damaged.
    """
    return old_history(folder.prefect, keep) if is_dry else remove_history(folder.prefect, keep)


def seconds_of(text: str) -> float:
    """A time such as 30d, 12h or 4w, in seconds.

    Raises:
      SpecError: it is none, or shorter than an hour, within which a run may still need what it stored.
    """
    match = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)([hdw])", text.strip())
    seconds = float(match[1]) * _UNITS[match[2]] if match else 0.0
    if seconds < _UNITS["h"]:
        raise SpecError(f"--keep: must be a time of at least an hour, such as 30d, 12h or 4w, got {text[:200]!r}")
    return seconds


def prune(folder: DataFolder, keep: float, *, is_dry: bool = False) -> Pruned:
    """Removes results older than `keep` seconds that nothing stands on, and unfinished files of dead processes.

    Reports, evidence files of suites, baselines, budget books and everything outside `results/` stay. What is removed is
    computed again if a spec asks for it again; what was charged to a book never is, as that would be charged again.
    """
    store, now = Store(folder.results), time.time()
    files, notes = _reported(folder)
    reported = {str(file["path"]).removeprefix("results/") for file in files}  # evidence is a second name of some
    present, more = _present(folder, store)
    kept: Counter[str] = Counter()
    removed, n_bytes = [], 0
    for path in sorted(folder.results.glob("*/*.npz")):
        name, about = f"{path.parent.name}/{path.name}", path.stat()
        why = (
            YOUNG if now - about.st_mtime < keep
            else REPORTED if name in reported
            else PRESENT if name in present
            else _guarded(path, store, is_private_known=not notes and not more)
        )  # fmt: skip
        if why is not None:
            kept[why] += 1
            continue
        removed.append(path)
        n_bytes += about.st_size if about.st_nlink == 1 else 0
        if not is_dry:
            path.unlink(missing_ok=True)
    if not is_dry:
        folder.sweep()
    return Pruned(tuple(removed), n_bytes, dict(kept), (*notes, *more))


def _guarded(path: Path, store: Store, *, is_private_known: bool) -> str | None:
    """Why an old result that nothing names stays nevertheless; None if it need not."""
    if path.parent.name == BENCHMARK:
        described = store.describe(BENCHMARK, path.stem)
        if described is not None and described.get(BOOK) is not None:
            return PAID
    if is_private_known:
        return None
    return UNREADABLE  # its suite may be one of those


def _reported(folder: DataFolder) -> tuple[list[JsonObject], list[str]]:
    """Files that reports list, and the reports that cannot be read."""
    listed: list[JsonObject] = []
    notes = []
    for suite in _suites(folder):
        report = suite / "report.json"
        if not report.exists():
            continue
        try:
            files = json.loads(report.read_text(encoding="utf-8"))["evidence"]["files"]
            listed += [{**file, "path": str(file["path"])} for file in files]
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            notes.append(f"{report}: cannot be read ({type(error).__name__})")
    return listed, notes


def _present(folder: DataFolder, store: Store) -> tuple[set[str], list[str]]:
    """Results that the suites' specs name by the present code: a rerun finds them."""
    names: set[str] = set()
    notes = []
    for suite in _suites(folder):
        if not (suite / "spec.yaml").exists():
            continue
        try:
            spec = load_spec(suite / "spec.yaml")
            for cell in Plan.of(spec, folder.root).played:
                names |= {_name(store.path(BENCHMARK, block.key)) for block in cell.blocks()}
                if cell.is_private:
                    names.add(_name(evidence_of(cell, store)))
        except (SpecError, OSError, ValueError) as error:
            notes.append(f"{suite.name}: its spec cannot be read: {' '.join(str(error).split())[:200]}")
    return names, notes


def _suites(folder: DataFolder) -> Iterator[Path]:
    parent = folder.suite("x").parent
    yield from (sorted(path for path in parent.iterdir() if path.is_dir()) if parent.is_dir() else ())


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"
