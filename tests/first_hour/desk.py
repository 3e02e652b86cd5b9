"""A person's first hour: an empty folder, the pages that they read, and the lines that they type from these.

A script is a module with twenty functions of a `Desk`. Whatever they type, save or run in Python is looked up in a page by
how it begins, so that a page which changes its line breaks the script, or moves it along.
"""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from documentation import ROOT, Block, blocks, command_lines, console, is_as_shown

_SHELL = ("", "sh", "bash", "console")
_SESSION = """
import contextlib, io, json, sys, traceback
names = {}
for line in sys.stdin:
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):  # progress is not what is shown
        try:
            exec(compile(json.loads(line), "<typed>", "exec"), names)
        except BaseException:
            traceback.print_exc(file=output)
    print(json.dumps(output.getvalue()), flush=True)
"""


Swap = Mapping[str, str]
"""Words of a page, and what a person has in their place."""
NOTHING: Swap = {}


class Started(NamedTuple):
    """A command that stays, and the file of what it prints."""

    process: subprocess.Popen[bytes]
    log: Path

    def until(self, is_so: Callable[[], Any], seconds: float = 300) -> Any:
        """Waits until something is so, and returns it; if the command or the time ends before, it fails with the output."""
        end = time.monotonic() + seconds
        while not (value := is_so()):
            assert self.process.poll() is None, f"ended with {self.process.returncode}:\n{self.log.read_text()}"
            assert time.monotonic() < end, f"not so after {seconds:.0f} s:\n{self.log.read_text()}"
            time.sleep(0.2)
        return value


def text_of(page: str) -> str:
    """The source of a page, by its path in the repository."""
    return (ROOT / page).read_text(encoding="utf-8")


def typed(page: str, start: str) -> str:
    """The one command line of a page that begins so, or is it; what is optional in it is left out.

    Raises:
      LookupError: no line of the page begins so, or several do.
    """
    text = text_of(page)
    lines = command_lines(text)
    for block in blocks(text):
        if block.language == "console":
            lines += [command for command, _ in console(block.body)]
        elif block.language in _SHELL:
            lines += block.body.replace("\\\n", " ").splitlines()
    matches = {" ".join(line.split("  #")[0].split()) for line in lines}
    exact = {line for line in matches if line == start} or {line for line in matches if line.startswith(start)}
    if len(exact) != 1:
        raise LookupError(f"{page} has {len(exact)} lines that begin with {start!r}: {sorted(exact)[:4]}")
    return exact.pop()


def block(page: str, part: str, mark: str = "") -> Block:
    """The one block of a page with this mark, or else the one that holds the text."""
    matches = [each for each in blocks(text_of(page)) if (each.mark == mark if mark else True) and part in each.body]
    if len(matches) != 1:
        raise LookupError(f"{page} has {len(matches)} blocks {mark!r} with {part!r}")
    return matches[0]


class Desk:
    """Where one person works.

    Attributes:
      folder: theirs, empty at first.
      facts: what one task leaves for later ones.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.facts: dict[str, Any] = {}
        self.failed: str | None = None
        self._session: subprocess.Popen[str] | None = None
        ours = ("BANDANA_", "PREFECT_", "MLFLOW_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        self.environment = kept | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "150",
        }  # fmt: skip

    def does(self, task: Callable[[Desk], None]) -> None:
        """Tries a task; after one that failed, the person is stuck, and the others are skipped."""
        if self.failed:
            pytest.skip(f"stuck at: {self.failed}")
        try:
            task(self)
        except BaseException:
            self.failed = task.__name__.replace("_", " ")
            raise

    def clones(self, *names: str) -> None:
        """Has folders of the repository, as a clone does."""
        for name in names:
            shutil.copytree(ROOT / name, self.folder / name)

    def saves(self, page: str, name: str, part: str = "", swap: Swap = NOTHING) -> Path:
        """Saves a block of a page: the one that is marked as this file, or the one that holds `part`."""
        body = _swapped(block(page, part, "" if part else f"file: {name}").body, swap)
        path = self.folder / name
        path.write_text(body, encoding="utf-8")
        return path

    def edits(self, name: str, old: str, new: str) -> None:
        """Changes one thing in a file of theirs."""
        path = self.folder / name
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{name} has no {old!r}"
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    def types(self, page: str, start: str, code: int = 0, swap: Swap = NOTHING) -> str:
        """Types a line of a page, and reads standard output, then errors; `swap` puts other words in place of the page's."""
        return self.runs(_swapped(typed(page, start), swap), code)

    def runs(self, line: str, code: int = 0) -> str:
        """Runs a line that is of no page, but of everybody's day."""
        done = subprocess.run(
            ["bash", "-c", line], cwd=self.folder, env=self.environment, text=True, stdin=subprocess.DEVNULL,
            capture_output=True,
        )  # fmt: skip
        printed = done.stdout + done.stderr
        assert done.returncode == code, f"{line} ended with {done.returncode}, not {code}:\n{printed}"
        return printed

    def sees(self, page: str, start: str, code: int = 0, swap: Swap = NOTHING) -> str:
        """Types a line of a page, and sees what the page shows below it."""
        line = typed(page, start)
        shown = [
            output for each in blocks(text_of(page)) if each.language == "console"
            for command, output in console(each.body) if " ".join(command.split()) == line
        ]  # fmt: skip
        printed = self.types(page, line, code, swap)
        assert any(is_as_shown(_swapped(output, swap), printed) for output in shown), f"{line} printed\n{printed}"
        return printed

    def python(self, page: str, part: str, swap: Swap = NOTHING) -> str:
        """Runs the Python block of a page that holds `part`, in one session, and sees what the page shows after it."""
        every = blocks(text_of(page))
        place = every.index(block(page, part, "python"))
        printed = self.asks(_swapped(every[place].body, swap))
        after = every[place + 1] if place + 1 < len(every) else None
        if after is not None and after.mark == "printed" and not swap:
            assert is_as_shown(after.body, printed), f"printed\n{printed}\nand {page} shows\n{after.body}"
        return printed

    def asks(self, code: str) -> str:
        """What Python prints on code in the session of this desk; a mistake fails the task."""
        if self._session is None:
            self._session = subprocess.Popen(
                [sys.executable, "-c", _SESSION], cwd=self.folder, env=self.environment, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )  # fmt: skip
        assert self._session.stdin is not None
        assert self._session.stdout is not None
        print(json.dumps(code), file=self._session.stdin, flush=True)
        printed = str(json.loads(self._session.stdout.readline()))
        assert "Traceback (most recent call last)" not in printed, f"{code}\n{printed}"
        return printed

    @contextmanager
    def starts(self, page: str, start: str, swap: Swap = NOTHING) -> Iterator[Started]:
        """Starts a line of a page that stays: its process, which is interrupted as by Ctrl-C at the end, and its output."""
        log = self.folder / "started.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {_swapped(typed(page, start), swap)}"], cwd=self.folder, env=self.environment,
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
            try:
                yield Started(process, log)
            finally:
                if process.poll() is None:
                    process.send_signal(signal.SIGINT)
                process.wait(120)

    def closes(self) -> None:
        """Ends the session of Python."""
        if self._session is not None:
            self._session.communicate()


def _swapped(text: str, swap: Swap) -> str:
    for old, new in swap.items():
        text, n = re.subn(rf"(?<![\w-]){re.escape(old)}(?![\w-])", lambda _, new=new: new, text)
        assert n, f"{old!r} is not in the page's\n{text}"
    return text


def tasks_of(module: ModuleType) -> list[Callable[[Desk], None]]:
    """The tasks of a script, in its order."""
    functions = [each for each in vars(module).values() if inspect.isfunction(each)]
    tasks = [each for each in functions if [*inspect.signature(each).parameters] == ["desk"]]
    return [task for task in tasks if not task.__name__.startswith(("_", "test_"))]


def looked_up(module: ModuleType) -> list[tuple[str, str, tuple[str, ...]]]:
    """What a script takes from pages: the method, the page and the words to find it by, of every call."""
    constants = {name: value for name, value in vars(module).items() if isinstance(value, str)}

    calls = [
        node for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("saves", "types", "sees", "python", "starts")
    ]  # fmt: skip
    matches = []
    for call in calls:
        assert isinstance(call.func, ast.Attribute)
        values = [constants.get(each.id) if isinstance(each, ast.Name) else getattr(each, "value", "") for each in call.args]
        page, *words = [value for value in values if isinstance(value, str) and value]
        matches.append((call.func.attr, page, tuple(words)))
    return matches


def look_up(how: str, page: str, words: Sequence[str]) -> None:
    """Finds in its page what a script takes from there.

    Raises:
      LookupError: it is not there, or more than once.
    """
    if how == "python":
        block(page, words[0], "python")
    elif how == "saves":
        name, part = (*words, "")[:2]
        block(page, part, "" if part else f"file: {name}")
    else:
        typed(page, words[0])


def stands_on_its_pages(script: ModuleType, least: int) -> None:
    """Holds that a script has twenty tasks, and that each of its more than `least` lines stands once on its page."""
    assert len(tasks_of(script)) == 20
    lines = looked_up(script)
    assert len(lines) > least
    for how, page, words in lines:
        look_up(how, page, words)
