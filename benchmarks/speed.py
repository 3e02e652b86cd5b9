"""Measures every number of docs/speed.md and writes them into the page.

    python -m benchmarks.speed FOLDER --into docs/speed.md [--only PART ...]

FOLDER is the environment of `benchmarks.peers`. Parts: waits, audits, peers, growth, limits, shares, workers, plan, devices.
Ratios and slopes come from runs in turn, so that what slows a machine slows both sides; absolute times are processor time.
Waits and audits need an idle machine; FOLDER keeps them, and long waits are shown if `benchmarks.waits` ran them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("BANDANA_WORKERS", "1")

ROOT = Path(__file__).resolve().parents[1]
SPECS = tuple(ROOT / "experiments" / f"{name}.yaml" for name in ("public-table", "capri"))
"""A run of half a minute, and one whole experiment of a paper."""
REPLAYS = 100_000
"""Replays a side in the audit from which the plan of many machines follows."""


def _waits(folder: Path) -> str:
    from benchmarks import waits

    short = [name for name, wait in waits.WAITS.items() if not wait.is_long]
    return waits.markdown(waits.measure(folder, short))


def _audits(folder: Path) -> str:
    return _printed("benchmarks.audit_waits", str(folder))


def _workers(folder: Path) -> str:
    return _printed("benchmarks.many_workers")


def _printed(module: str, *arguments: str) -> str:
    """The table that a benchmark prints in a process of its own, which has all cores."""
    from benchmarks.waits import environment

    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment()).stdout.strip()


def _peers(folder: Path) -> str:
    from benchmarks.peers.__main__ import markdown, measure

    measured = measure(folder)
    (folder / "peers.json").write_text(json.dumps(measured), encoding="utf-8")
    return markdown(measured)


def _growth(folder: Path) -> str:
    from benchmarks import growth

    return growth.markdown(growth.measure())


def _limits(folder: Path) -> str:
    """What grows with charges, entries, cells and rows, in a process each, so that none inherits another's memory."""
    code = "import json; from benchmarks import {} as part; print(json.dumps([r._asdict() for r in part.{}()]))"
    lines = ["| what | measured | at most | |", "|---|--:|--:|---|"]
    for module, function in (("accounting", "ledger"), ("book_length", "measure"), ("large_suites", "measure")):
        done = subprocess.run(
            [sys.executable, "-c", code.format(module, function)], check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        for row in json.loads(done.stdout.splitlines()[-1]):
            is_met = row["measured"] <= row["limit"]
            unit = row["unit"]
            lines.append(
                f"| {row['name']} | {row['measured']:.3g} {unit} | {row['limit']:g} | {'met' if is_met else '**missed**'} |"
            )
    return "\n".join(lines)


def _shares(folder: Path) -> str:
    from benchmarks import time_shares

    return time_shares.markdown(time_shares.measure(SPECS))


def _plan(folder: Path) -> str:
    from benchmarks import scale

    return scale.markdown(scale.one_core(REPLAYS))


def _devices(folder: Path) -> str:
    return _printed("benchmarks.devices", "cpu")


PARTS: dict[str, Callable[[Path], str]] = {
    "waits": _waits, "audits": _audits, "peers": _peers, "growth": _growth, "limits": _limits, "shares": _shares,
    "workers": _workers, "plan": _plan, "devices": _devices,
}  # fmt: skip
"""Name of a part -> what measures it, given the environment of the libraries."""


def replaced(page: str, part: str, table: str) -> str:
    """The page with another table between the marks of a part.

    Raises:
      ValueError: the page has no such marks.
    """
    begin, end = f"<!-- {part} -->", f"<!-- end of {part} -->"
    if page.count(begin) != 1 or page.count(end) != 1:
        raise ValueError(f"the page must have {begin} and {end} once each")
    before, rest = page.split(begin)
    return f"{before}{begin}\n{table}\n{end}{rest.split(end)[1]}"


def refresh(folder: Path, into: Path | None, parts: Iterable[str]) -> None:
    """Measures the parts, one after the other; each is written as soon as it is there."""
    for part in parts:
        print(f"measuring {part}", file=sys.stderr, flush=True)
        table = PARTS[part](folder)
        print(table, flush=True)
        if into is not None:
            into.write_text(replaced(into.read_text(encoding="utf-8"), part, table), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="virtual environment of the libraries, made where it is not there")
    parser.add_argument("--into", type=Path, metavar="PAGE", help="the page whose tables are replaced")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help="these parts alone")
    chosen = parser.parse_args()
    refresh(chosen.folder.resolve(), chosen.into, chosen.only)


if __name__ == "__main__":
    main()
