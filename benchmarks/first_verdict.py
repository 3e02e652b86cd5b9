"""Times a stranger's first verdict: from `pip install` of the light wheel to an audit of a mechanism of their own.

    python -m benchmarks.first_verdict [--python python3.13]

All is typed as `docs/how-to/audit-a-release.md` shows it, in a new environment and an empty folder. What is not timed: the
wheel is built before, packages lie as wheels on this machine, and the environment is there. Wall times have goals for
two idle cores; the load beside them says whether they were idle.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks import installed
from benchmarks.result import Result

PAGE = "docs/how-to/audit-a-release.md"
MOST_SECONDS = 120.0
MOST_SECONDS_OF_INSTALLATION = 60.0
MOST_MEGABYTES = 550.0


class Page(NamedTuple):
    """What a reader of the page types until the first verdicts."""

    install: str
    """The line of pip."""
    file: str
    """Name of the file that they save."""
    text: str
    """Its content."""
    commands: tuple[str, ...]
    """The lines that audit it, in order."""


def page() -> Page:
    """Reads the page.

    Raises:
      LookupError: it shows no line of pip, no file, or no command on that file.
    """
    text = (installed.ROOT / PAGE).read_text(encoding="utf-8")
    install = re.search(r"^pip install .*$", text, re.MULTILINE)
    file = re.search(r"^<!-- file: (\S+) -->\n```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    if install is None or file is None:
        raise LookupError(f"{PAGE} shows no line of pip, or no file to save")
    commands = re.findall(rf"^\$ (bandana audit-release {re.escape(file[1])}:\w+ .*--neighbor .*)$", text, re.MULTILINE)
    if not commands:
        raise LookupError(f"{PAGE} shows no audit of {file[1]}")
    return Page(install[0], file[1], file[2], tuple(commands))


class Typed(NamedTuple):
    """One line that was typed."""

    line: str
    code: int
    printed: str
    seconds: float
    """From its start to its end, by the wall."""
    processor: float
    """User and system, with all children."""


def typed(reader: Page, folder: Path, wheels: Path, python: Path) -> Iterator[Typed]:
    """Types a page's lines in a folder, which is empty.

    Args:
      reader: what is typed.
      folder: where.
      wheels: the only place where pip looks for packages.
      python: of the environment.
    """
    variables = installed.words_of_a_user(python) | {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
    variables |= {"PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    for number, line in enumerate([reader.install, *reader.commands]):
        if number == 1:
            (folder / reader.file).write_text(reader.text, encoding="utf-8")
        begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            ["bash", "-c", line], cwd=folder, env=variables, stdin=subprocess.DEVNULL, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        seconds, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
        worked = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        yield Typed(line, done.returncode, done.stdout, seconds, worked)


def wheels_of(folder: Path, python: Path) -> Path:
    """A folder of the wheel of this checkout and of all that the light installation needs, in the lock file's versions."""
    wheel, place = installed.wheel_of(folder), folder / "wheels"
    words = ["download", "-q", "--only-binary", ":all:", "-c", installed.pins_of(folder), "-d", place, wheel]
    installed.run(python, "-m", "pip", *words, check=True)
    return place


def measure(interpreter: str) -> Iterator[Result]:
    """Times of the installation and of the first verdict, and the size of the environment.

    Raises:
      RuntimeError: a line ended as it should not, or its verdict is another one than the page's.
    """
    with tempfile.TemporaryDirectory() as place:
        python = installed.environment(Path(place, "environment"), interpreter)
        wheels, reader = wheels_of(Path(place), python), page()
        (folder := Path(place, "empty")).mkdir()
        lines: list[Typed] = []
        for each, start in zip(typed(reader, folder, wheels, python), ("", "NOT REFUTED", "FAIL"), strict=True):
            if each.code != (start == "FAIL") or start not in each.printed[:20]:
                raise RuntimeError(f"{each.line} ended with {each.code}:\n{each.printed}")
            lines.append(each)
            print(f"{each.seconds:6.1f} s, {each.processor:.1f} s of processors  {each.line}")
        megabytes = installed.bytes_of(installed.packages_of(python)) / 1e6
    pip, first, _ = lines
    words = f"(of processors {pip.processor:.0f} s)"
    yield Result(f"pip install of the light wheel {words}", pip.seconds, MOST_SECONDS_OF_INSTALLATION, "s")
    words = f"(of processors {pip.processor + first.processor:.0f} s)"
    yield Result(f"from pip install to the first verdict {words}", pip.seconds + first.seconds, MOST_SECONDS, "s")
    yield Result("size of the light installation", megabytes, MOST_MEGABYTES, "MB")


def main() -> int:
    """Prints each number beside its goal, and 1 if one is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_verdict", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="interpreter of the environment, such as python3.13")
    chosen = parser.parse_args()
    interpreter = installed.python_of(chosen.python) if chosen.python != sys.executable else chosen.python
    if interpreter is None:
        parser.error(f"--python: no {chosen.python} on this machine")
    version = installed.run(interpreter, "--version", check=True).stdout.split()[-1]
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors; Python {version}")
    rows = [*measure(interpreter)]
    for row in rows:
        print(row)
    return 0 if all(row.is_met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
