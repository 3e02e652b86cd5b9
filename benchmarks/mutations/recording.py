"""What each test costs and which statements it reaches: recorded once for a version of the code, with probes in a copy."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from benchmarks.mutations.imports import closure, import_graph, is_test, python_files
from benchmarks.mutations.plugins import FileRecord, write_json
from benchmarks.mutations.probes import Site, instrument_all
from benchmarks.mutations.workshop import PRODUCT, Workshop, fingerprint, third_party

FOLDERS = (*PRODUCT, "tests", "benchmarks", "docs", "experiments")
SUITES = {"make test": "not nightly", "make test-all": "nightly"}
"""The second is what `make test-all` runs beyond the first."""
_HOW = ("benchmarks/mutations/probes.py", "benchmarks/mutations/plugins.py", "benchmarks/mutations/reached.py")
_LONGEST = 3600.0


class Recording(NamedTuple):
    """Record of one suite.

    Attributes:
      where: folders of tests, separated by commas.
      version: fingerprint of the code and the tests.
      sites: of the probes.
      files: by path; what the tests reached and what they cost.
      red: tests that fail without any mutation, here and now.
      unseen: tests that fail only beside probes, as they read the source; what they reach is not known.
    """

    where: str
    version: str
    sites: list[Site]
    files: dict[str, FileRecord]
    red: list[str]
    unseen: list[str]


class Versions:
    """Fingerprints of test files with all that they import, and of the whole."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._graph = import_graph(root, FOLDERS)
        self.all = fingerprint(root, python_files(root, FOLDERS))

    def of_tests(self, paths: Iterable[str]) -> str:
        """Changes with the test files, their helpers and the code that they import, and with nothing else."""
        return fingerprint(self._root, self.around(paths))

    def around(self, paths: Iterable[str]) -> set[str]:
        """The test files and all that they import; how a recording is made counts as one of their imports."""
        found = set().union(*(closure(self._graph, path) for path in [*paths, *_HOW]))
        return {path for path in found if (self._root / path).exists()}


def read(folder: Path, suite: str) -> Recording | None:
    """The stored recording, if there is one."""
    place = folder / f"{suite.replace(' ', '-')}.json"
    if not place.exists():
        return None
    tree = json.loads(place.read_text(encoding="utf-8"))
    sites = [Site(path, (place[0], place[1]), function) for path, place, function in tree.pop("sites")]
    return Recording(**tree, sites=sites) if set(tree) | {"sites"} == set(Recording._fields) else None


def record(
    root: Path, folder: Path, suite: str, n_processes: int, say: Callable[[str], None], where: str = "tests"
) -> Recording:
    """Runs every test file of a suite in a process of its own, in an instrumented copy.

    Args:
      root: the checkout.
      folder: where copies and recordings lie.
      suite: one of SUITES.
      n_processes: how many files side by side.
      say: gets a line a file.
      where: folders of tests, separated by commas.
    """
    versions = Versions(root)
    tests = [path for path in python_files(root, where.split(",")) if is_test(path)]
    sources = python_files(root, PRODUCT)
    preloaded = third_party(root, python_files(root, FOLDERS))
    shops: SimpleQueue[Workshop] = SimpleQueue()
    opened, sites = [], []
    for i in range(max(n_processes, 1)):
        place = folder / f"probes-{i}"
        written = place / "written"
        environment = {"BANDANA_PROBES_ROOT": str(place / "checkout"), "BANDANA_PROBES_FILE": str(written)}
        shop = Workshop(root, place, preloaded, environment).__enter__()
        sites = instrument_all(shop.copy, sources)
        opened.append(shop)
        shops.put(shop)
    kept = _Kept(folder / f"{suite.replace(' ', '-')}.lines", sites)
    found = {path: content for path in tests if (content := kept.find(path, versions.of_tests([path]))) is not None}

    def run(path: str) -> None:
        shop = shops.get()
        try:
            elsewhere = shop.copy.parent / "written"
            elsewhere.unlink(missing_ok=True)
            result = shop.run(_job(path, SUITES[suite], True))
            found[path] = content = _with_processes(result.written.get("record"), elsewhere)
            if result.ended_by or result.code not in (0, 1, 5):
                say(f"{path}: pytest ended with {result.code} {result.ended_by}\n{result.log}")
            else:
                kept.add(path, versions.of_tests([path]), content, versions.around([path]))
            spent = sum(test["cpu"] for test in content["tests"].values()) + content["shared"]
            say(f"{len(found)}/{len(tests)} {path}: {len(content['tests'])} tests, {spent:.1f} s")
        finally:
            shops.put(shop)

    with ThreadPoolExecutor(n_processes) as pool:
        list(pool.map(run, [path for path in tests if path not in found]))
    for shop in opened:
        shop.__exit__()
    tests_found = [item for content in found.values() for item in content["tests"].items()]
    failed = sorted(name for name, test in tests_found if test["outcome"] == "failed")
    red = _still_failing(root, folder, failed, SUITES[suite], preloaded)
    recording = Recording(where, versions.all, sites, found, red, sorted(set(failed) - set(red)))
    write_json(folder / f"{suite.replace(' ', '-')}.json", recording._asdict())
    return recording


class _Kept:
    """Records of test files that are still true, one JSON line each; probes stand in them as sites, as numbers shift."""

    def __init__(self, place: Path, sites: list[Site]) -> None:
        self._place = place
        self._sites = sites
        self._lock = threading.Lock()
        self._number = {site: i for i, site in enumerate(sites)}
        lines = place.read_text(encoding="utf-8").splitlines() if place.exists() else []
        self._found = {(path, version): (sites, record) for path, version, sites, record in map(json.loads, lines)}

    def find(self, path: str, version: str) -> FileRecord | None:
        """A record of this version, of which every probe is still there."""
        known: Mapping[str, Any]
        content: FileRecord | None
        known, content = self._found.get((path, version), ({}, None))
        if content is None:
            return None
        sites = {int(number): Site(where, tuple(place), name) for number, (where, place, name) in known.items()}
        if any(site not in self._number for site in sites.values()):
            return None
        now = {number: self._number[site] for number, site in sites.items()}
        content["collected"] = sorted(now[probe] for probe in content["collected"])
        for test in content["tests"].values():
            test["reached"] = sorted(now[probe] for probe in test["reached"])
        return content

    def add(self, path: str, version: str, content: FileRecord, around: set[str]) -> None:
        """Appends a record, unless the test reached what its imports do not tell."""
        used = set(content["collected"]).union(*(test["reached"] for test in content["tests"].values()))
        if any(self._sites[number].path not in around for number in used):
            return
        line = json.dumps([path, version, {number: self._sites[number] for number in sorted(used)}, content])
        with self._lock, self._place.open("a", encoding="utf-8") as out:
            out.write(line + "\n")


def _job(path: str, marker: str, is_instrumented: bool) -> dict[str, Any]:
    return {"kind": "record", "files": [path], "marker": marker, "is_instrumented": is_instrumented, "wall": _LONGEST}


def _with_processes(content: FileRecord | None, written: Path) -> FileRecord:
    """Adds what processes reached that tests started; what has no test's name counts for the whole file."""
    content = content or {"tests": {}, "collected": [], "shared": 0.0}
    reached: dict[str, set[int]] = {}
    if written.exists():
        for line in written.read_text(encoding="utf-8").splitlines():
            name, _, probe = line.rpartition("\t")
            reached.setdefault(name, set()).add(int(probe))
    for name, probes in reached.items():
        if name in content["tests"]:
            content["tests"][name]["reached"] = sorted(probes.union(content["tests"][name]["reached"]))
        else:
            content["collected"] = sorted(probes.union(content["collected"]))
    return content


def _still_failing(root: Path, folder: Path, failed: list[str], marker: str, preloaded: list[str]) -> list[str]:
    """Which tests fail in a plain copy too."""
    red: list[str] = []
    if not failed:
        return red
    with Workshop(root, folder / "plain", preloaded) as shop:
        for path in sorted({name.partition("::")[0] for name in failed}):
            result = shop.run(_job(path, marker, False))
            tests = (result.written.get("record") or {"tests": {}})["tests"]
            passed = {name for name, test in tests.items() if test["outcome"] != "failed"}
            red += [name for name in failed if name.startswith(f"{path}::") and name not in passed]
    return red


def forget(folder: Path) -> None:
    """Removes the copies; recordings and results stay."""
    for place in folder.iterdir():
        if place.is_dir():
            shutil.rmtree(place)
