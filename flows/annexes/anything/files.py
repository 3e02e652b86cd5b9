"""A file of a user's: read, loaded, and blamed with its line for what it raises. `FILE.py:NAME` names an object in one."""

from __future__ import annotations

import ast
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from bandana import ready
from bandana.audits.claims import ClaimError
from bandana.audits.own.conformance import ProtocolError
from bandana.flows.annexes.anything.outputs.calls import BrokenSubject
from bandana.flows.annexes.anything.pairs.starts import Aside, started
from bandana.flows.own.code import OwnCodeError, OwnObject
from bandana.flows.texts.mistakes import SpecError

ALGORITHM, FUNCTION, RELEASE = "algorithm", "function", "release"


@dataclass(frozen=True)
class Loaded:
    """The algorithm, function or release (its `kind` says which) that `FILE.py:NAME` names; `source` is the file's text."""

    kind: str
    subject: Any
    path: Path
    name: str
    source: str

    @property
    def label(self) -> str:
        """Readable, and without the place that the file lies at."""
        return f"{self.path.name}:{self.name}"

    @property
    def words(self) -> dict[str, str]:
        """Who is audited, as evidence says it; a program and samples have no source."""
        digest = {"source sha256": sha256(self.source.encode()).hexdigest()} if self.source else {}
        return {"kind": self.kind, "name": self.label, **digest}


def read(reference: str, option: str = "algorithm") -> tuple[Path, str, str, ast.Module]:
    """Path, name, text and syntax tree of `FILE.py:NAME`.

    Raises:
      SpecError: no such file, or no Python.
    """
    file, is_named, name = reference.rpartition(":")
    if not is_named or not file or not name.isidentifier():
        raise SpecError(f"{option}: must be FILE.py:NAME, such as examples/own_bandit.py:bandit, got {reference!r}")
    path = ready.place(Path(file))
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{option}: {path} cannot be read: {error}") from error
    try:
        return path, name, source, ast.parse(source, str(path))
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise SpecError(f"{option}: {path}:{line}: {getattr(error, 'msg', error)}") from error


def apart(function: object, path: Path, name: str) -> Aside:
    """A process that loaded the function from its file too, and has called nothing."""
    return started(function, [sys.executable, "-P", "-m", f"{__package__}.apart", str(path.absolute()), name])


def named(path: Path, name: str, option: str = "algorithm") -> Any:
    """The object of this name in the file, once it has run; see `bandana.flows.own.code`.

    Raises:
      SpecError: the file fails, or has no such name.
    """
    try:
        return OwnObject(path.absolute(), name).load()
    except OwnCodeError as error:
        raise SpecError(f"{option}: {error}") from error


@contextmanager
def blamed_on(path: Path, option: str = "algorithm") -> Iterator[None]:
    """Whatever the user's file raises is told in one line, with its line in the file; so is a claim that does not fit."""
    try:
        yield
    except (SpecError, KeyboardInterrupt):
        raise
    except ClaimError as error:
        raise SpecError(f"--claim: {error}") from error
    except (ProtocolError, BrokenSubject) as error:
        raise SpecError(f"{option}: {path.name}: {error}") from error
    except MemoryError:
        raise
    except BaseException as error:
        lines = [
            frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == path.absolute()
        ]
        notes = getattr(error, "__notes__", ())
        if not lines and not notes and not isinstance(error, SyntaxError):
            raise
        where = f"{path}:{lines[-1]}" if lines else str(path)
        words = "\n".join([f"{type(error).__name__}: {error}", *notes])
        raise SpecError(f"{option}: {where}: {words}") from error
