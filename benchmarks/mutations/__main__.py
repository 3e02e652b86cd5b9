"""Measures what the tests catch, by planting one-line mistakes in copies of the checkout.

    python -m benchmarks.mutations            # record, plant, write benchmarks/data/mutations.json and docs/mutations.md
    python -m benchmarks.mutations --list     # the mutations alone
    python -m benchmarks.mutations --page     # the page alone, from what is stored

A stopped run goes on where it was. Recordings, copies and findings lie in a cache folder outside the checkout.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from datetime import date
from pathlib import Path

from benchmarks.mutations import page
from benchmarks.mutations.campaign import CAUGHT, Book, Campaign
from benchmarks.mutations.imports import python_files
from benchmarks.mutations.kinds import PER_KIND, choose
from benchmarks.mutations.operators import Mutation, declared_types, mutations
from benchmarks.mutations.page import MEASURED, PAGE, ROOT, Planted
from benchmarks.mutations.recording import SUITES, Versions, read, record
from benchmarks.mutations.workshop import PRODUCT

TEST, TEST_ALL = SUITES


def say(line: str) -> None:
    """With the time: a run takes long."""
    print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)


def chosen_from(root: Path, seed: int, per_kind: int) -> dict[str, list[Mutation]]:
    """The mutations to plant, by kind."""
    sources = {path: (root / path).read_text(encoding="utf-8") for path in python_files(root, PRODUCT)}
    types = declared_types(sources.values())
    candidates = [mutation for path, source in sources.items() for mutation in mutations(path, source, types)]
    return choose(candidates, sources.__getitem__, seed, per_kind)


def machine() -> str:
    """The processor's name, as the operating system tells it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "an unknown processor")


def measure(given: argparse.Namespace, folder: Path, chosen: dict[str, list[Mutation]]) -> None:
    """Records and plants, first with the tests of `make test`, then on survivors with those of `make test-all`."""
    planted = [mutation for group in chosen.values() for mutation in group]
    if given.only:
        planted = [mutation for mutation in planted if given.only in mutation.name]
    book = Book(folder / "findings.lines")
    equivalent = {name for name, reason in page.read_reasons().items() if reason.is_equivalent}
    for suite in SUITES if given.nightly else [TEST]:
        recording = read(folder, suite)
        is_fresh = recording is not None and recording.version == Versions(ROOT).all and recording.where == given.tests
        if recording is None or not (is_fresh or given.stale):
            say(f"recording what the tests of `{suite}` reach")
            recording = record(ROOT, folder, suite, given.processes, say, given.tests)
        for name in recording.red:
            say(f"fails without any mutation, and counts for nothing: {name}")
        say(f"planting {len(planted)} mutations")
        Campaign(ROOT, folder, recording, suite, book, equivalent).run(planted, given.processes, say)
        if suite == TEST:
            planted = [m for m in planted if (found := book.latest(m.name, TEST)) is None or found.outcome != CAUGHT]


def stored(chosen: dict[str, list[Mutation]], book: Book, seed: int) -> dict[str, object]:
    """What is committed: every planted mutation that has a finding."""
    items, spent = [], 0.0
    for kind, group in chosen.items():
        for mutation in group:
            found, later = book.latest(mutation.name, TEST), book.latest(mutation.name, TEST_ALL)
            if found is None:
                continue
            last = later if later and found.outcome != CAUGHT else found
            spent += found.cpu + (later.cpu if later else 0.0)
            by = last.by.partition("[")[0]
            outcome = later.outcome if later else CAUGHT if found.outcome == CAUGHT else ""
            items.append(Planted(kind, mutation.name, mutation.operator, found.outcome, outcome, by, last.how)._asdict())
    before = json.loads(MEASURED.read_text(encoding="utf-8")) if MEASURED.exists() else {}
    caught = sum(item["test"] == CAUGHT for item in items)
    at_first = before["caught_at_first"] if before.get("seed") == seed else caught
    header = {"seed": seed, "date": date.today().isoformat(), "machine": f"{os.cpu_count()} cores of {machine()}"}
    return {**header, "caught_at_first": at_first, "processor_minutes": round(spent / 60), "mutations": items}


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutations", description=__doc__.partition("\n")[0])
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "bandana-mutations"
    parser.add_argument("--seed", type=int, default=1, help="of the choice")
    parser.add_argument("--per-kind", type=int, default=PER_KIND, help="mutations of each kind of lines")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="mutations side by side")
    parser.add_argument("--folder", type=Path, default=cache, help="recordings, copies and findings")
    parser.add_argument("--tests", default="tests", help="folders of tests to record, separated by commas")
    parser.add_argument(
        "--only", default="", help="plant those alone whose name contains this text; nothing is written down"
    )
    parser.add_argument("--nightly", action="store_true", help="try survivors on the tests that only `make test-all` runs")
    parser.add_argument("--stale", action="store_true", help="use a recording of another version of the code")
    parser.add_argument("--list", action="store_true", help="show the mutations and end")
    parser.add_argument("--page", action="store_true", help="write the page from what is stored and end")
    given = parser.parse_args()
    if not given.page:
        chosen = chosen_from(ROOT, given.seed, given.per_kind)
        if given.list:
            for kind, group in chosen.items():
                print(
                    f"\n{kind}",
                    *(f"  {m.path}:{m.line} {m.operator}\n    {m.before}\n    {m.after}" for m in group),
                    sep="\n",
                )
            return 0
        folder = given.folder.resolve()
        folder.mkdir(parents=True, exist_ok=True)
        measure(given, folder, chosen)
        if given.only:
            return 0
        tree = stored(chosen, Book(folder / "findings.lines"), given.seed)
        MEASURED.write_text(json.dumps(tree, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page.markdown(json.loads(MEASURED.read_text(encoding="utf-8")), page.read_reasons()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
