"""Takes an annex away and tests what is left: its folder, its tests, its pages and its line in the table go, nothing else.

    python -m benchmarks.without ANNEX [PYTEST ARGUMENT ...]
    python -m benchmarks.without all [PYTEST ARGUMENT ...]

With `all`, the core stands alone.

A copy of the files that git tracks is made in a temporary folder. Tests that hold pages against the whole product are left
out, because pages of the core link to those of annexes; by default the quick tests of everything else run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from bandana.flows.annex import NAMES

ROOT = Path(__file__).resolve().parents[1]
_TABLE = "flows/annex.py"
ALL = "all"
ALONE = """import sys

sys.meta_path[:] = [each for each in sys.meta_path if not getattr(each, "__module__", "").startswith("__editable___bandana")]
"""
"""Start of each interpreter: an editable installation would bring back the modules of `bandana` that were removed."""
OF_PAGES = (
    "tests/test_docs.py", "tests/test_docs_reference.py", "tests/test_listening.py", "tests/test_review_questions.py",
    "tests/test_mutations.py", "tests/test_citations.py", "tests/test_words.py", "tests/test_paper_pages.py",
    "tests/first_hour",
)  # fmt: skip
"""Tests that read all pages, or files that pages name."""
OF_COUNTS = (
    "tests/test_house.py::test_no_count_of_the_house", "tests/test_house.py::test_limits_are_those_of_now",
    "tests/test_house.py::test_private_names_of_other_projects", "tests/test_numeric.py::test_nothing_in_the_lists",
    "tests/test_house.py::test_every_file_of_an_annex", "tests/test_public_surface.py::test_the_public_surface_is",
    "tests/test_words.py::test_every_command_that_is_named_exists",
    "tests/test_words.py::test_every_file_that_is_named_exists", "tests/test_quick.py::test_listed_tests_are_in_files",
    "tests/test_lock.py::test_every_install_line_of_the_documentation",
)  # fmt: skip
"""Tests that hold counts and lists of the whole product, names on all its pages, or a checkout of git."""


def folders_of(annex: str) -> tuple[str, ...]:
    """Everything that belongs to an annex, relative to the root: its code, its tests and its pages."""
    pages: tuple[str, ...] = import_module(f"bandana.flows.annexes.{annex}").ANNEX.pages
    return (f"flows/annexes/{annex}", f"tests/flows/annexes/{annex}", *pages)


def copy(target: Path) -> None:
    """Copies what git tracks, links as links."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    for name in filter(None, listed.split("\0")):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target / name, follow_symlinks=False)


def remove(annex: str, target: Path) -> None:
    """Removes an annex from a copy.

    Raises:
      ValueError: the table has not one line of it.
    """
    for name in folders_of(annex):
        place = target / name
        shutil.rmtree(place) if place.is_dir() else place.unlink()
    table = target / _TABLE
    text, n_lines = re.subn(rf'^    "{annex}",\n', "", table.read_text("utf-8"), flags=re.MULTILINE)
    if n_lines != 1:
        raise ValueError(f"{_TABLE} must name {annex!r} in one line of its own, got {n_lines}")
    table.write_text(text, "utf-8")


def _left_out() -> list[str]:
    return [*(f"--ignore={name}" for name in OF_PAGES), *(f"--deselect={name}" for name in OF_COUNTS)]


def main() -> None:
    """Exits as the tests do."""
    if len(sys.argv) < 2 or sys.argv[1] not in (*NAMES, ALL):
        raise SystemExit(f"{__doc__}\nAnnexes: {', '.join(NAMES)}")
    removed = NAMES if sys.argv[1] == ALL else (sys.argv[1],)
    chosen = sys.argv[2:] or ["-m", "not slow and not nightly", "-q"]
    with tempfile.TemporaryDirectory(prefix=f"without-{sys.argv[1]}-") as folder:
        target = Path(folder)
        copy(target)
        (target / "sitecustomize.py").write_text(ALONE, "utf-8")
        for annex in removed:
            remove(annex, target)
            print(f"without {annex}: {', '.join(folders_of(annex))}", flush=True)
        print(f"left out: {', '.join([*OF_PAGES, *OF_COUNTS])}", flush=True)
        for command in (["-m", "bandana", "--help"], ["-m", "pytest", *chosen, *_left_out()]):
            done = subprocess.run([sys.executable, *command], cwd=target, env={**os.environ, "PYTHONPATH": folder})
            if done.returncode:
                raise SystemExit(done.returncode)


if __name__ == "__main__":
    main()
