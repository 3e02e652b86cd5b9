"""`bandana list`: its table, which is kept beside the catalog, agrees with it, and showing it imports no algorithm."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import resources
from pathlib import Path

from bandana.algorithms.catalog import CATALOG
from bandana.flows.queries.catalog import overview

_HEAVY = ("prefect", "mlflow", "torch", "pandas", "matplotlib", "numba", "scipy", "hypothesis", "sqlalchemy")
_IMPORTED = """
import sys
from bandana.flows.cli import app
app(["list"], standalone_mode=False)
print(*(name for name in sys.argv[1:] if name in sys.modules), file=sys.stderr)
"""


def _table() -> str:
    return "[\n" + ",\n".join(f" {json.dumps(row)}" for row in overview(CATALOG)) + "\n]\n"


def test_kept_table_agrees_with_the_catalog():
    kept = resources.files("bandana.flows").joinpath("catalog.json").read_text("utf-8")
    assert kept == _table(), "write it again: python -m tests.flows.queries.test_catalog"


def test_list_imports_no_algorithm_and_shows_all(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", _IMPORTED, *_HEAVY], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stderr.split() == []
    shown = [line.split()[0] for line in done.stdout.splitlines()[1:] if line and not line.startswith("No leaderboard")]
    assert shown[: len(overview(CATALOG))] == [row[0] for row in overview(CATALOG)]


if __name__ == "__main__":
    (Path(__file__).resolve().parents[3] / "flows" / "catalog.json").write_text(_table(), "utf-8")
