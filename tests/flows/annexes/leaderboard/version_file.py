"""The file that says which version of a benchmark a folder holds, written anew when a problem was added or changed."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from bandana.flows.annexes.leaderboard.benchmark_folder import VERSION, digest


def written_version(folder: Path, title: str, version: int) -> str:
    """The text of a version file that lists the problems as they are now, in the order of the one that there is."""
    place = folder / VERSION
    before = json.loads(place.read_text("utf-8"))["problems"] if place.exists() else {}
    names = [path.stem for path in sorted(folder.glob("*.yaml"))]
    ordered = [*(name for name in before if name in names), *(name for name in names if name not in before)]
    problems = {name: digest(yaml.safe_load((folder / f"{name}.yaml").read_text("utf-8"))) for name in ordered}
    return json.dumps({"version": version, "title": title, "problems": problems}, indent=1) + "\n"
