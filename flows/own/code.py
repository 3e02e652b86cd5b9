"""Object that `FILE.py:NAME` names in a spec: loaded from its file in every process, and called with what it takes."""

from __future__ import annotations

import inspect
import sys
import traceback
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass, replace
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import Any

from bandana.algorithms import plugins
from bandana.flows.keys.own_files import OwnFiles, is_local, own_files

_REFUSED: ContextVar[bool] = ContextVar("_REFUSED", default=False)
_LOCK = RLock()
_LOADED: dict[tuple[Path, str], ModuleType] = {}
"""File and digest of all that counts -> the module; an edited file is loaded again."""


class OwnCodeError(ValueError):
    """A user's file that cannot be used; the message names file, line and what is wrong."""


@contextmanager
def nothing_runs() -> Iterator[None]:
    """Refuses code and data of users, whoever names them, while a spec that came with evidence is worked on."""
    token = _REFUSED.set(True)
    try:
        yield
    finally:
        _REFUSED.reset(token)


def check_allowed(what: str) -> None:
    """Refuses code or data of a user's within `nothing_runs`.

    Raises:
      OwnCodeError: it is refused.
    """
    if _REFUSED.get():
        raise OwnCodeError(f"{what}: a spec that came with evidence may name no code and no data")


class Loadable(ABC):
    """Something of a user's that can be loaded in every process, and called with what it takes."""

    @property
    @abstractmethod
    def label(self) -> str:
        """Readable, and without a folder."""

    @abstractmethod
    def load(self) -> Any:
        """The object.

        Raises:
          OwnCodeError: it cannot be loaded.
        """

    def digest(self) -> str:
        """A hash of the user's files that it depends on; empty for an installed package, whose code does not change."""
        return ""

    def blamed(self, *passed: type[Exception]) -> AbstractContextManager[None]:
        """Where its errors are told as its own; see `blamed_on`."""
        return blamed_on(None, *passed)

    def made(self, given: Mapping[str, object], offered: Mapping[str, object]) -> Any:
        """Returns what the object makes of parameters, or the object itself with its fields replaced.

        Args:
          given: the user's parameters; all of them must be taken.
          offered: what is passed if it is asked for by name; None where the problem has no such thing.

        Raises:
          OwnCodeError: a parameter is not taken, one that is needed is not there, or the file's code raises an error.
        """
        target = self.load()
        self.check_parameters(given)
        with self.blamed():
            if not is_factory(target):
                return replace(target, **given) if given else target
            signature = inspect.signature(target).parameters
            known = {name: offered[name] for name in signature if name in offered and offered[name] is not None}
            taken = {**known, **given}
            for name, parameter in signature.items():
                if parameter.default is parameter.empty and parameter.kind not in _SEVERAL and name not in taken:
                    hint = "this environment has none" if name in offered else "write it under parameters"
                    raise OwnCodeError(f"{self.label} needs {name}: {hint}")
            return target(**taken)

    def check_parameters(self, given: Mapping[str, object]) -> None:
        """Checks that the object takes these parameters.

        Raises:
          OwnCodeError: it does not take one of them; the message names it and those that are taken.
        """
        target = self.load()
        if is_factory(target):
            signature = inspect.signature(target).parameters
            if any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature.values()):
                return
            known = [name for name, parameter in signature.items() if parameter.kind not in _SEVERAL]
        else:
            known = [field.name for field in fields(target) if field.init] if is_dataclass(target) else []
        for name in given:
            if name not in known:
                takes = f"it takes {', '.join(known)}" if known else "it takes none"
                raise OwnCodeError(f"{name}: no parameter of {self.label}; {takes}")


@dataclass(frozen=True)
class OwnObject(Loadable):
    """Something in a user's file.

    Attributes:
      path: the file, absolute.
      name: what it is called there.
    """

    path: Path
    name: str

    @classmethod
    def parse(cls, text: str, context: Mapping[str, str | Path] | None) -> OwnObject:
        """Reads `FILE.py:NAME` in a field of a spec.

        Args:
          text: the field's value.
          context: what the spec is validated with; a relative file lies in its `folder`, or in the working folder.

        Raises:
          OwnCodeError: the text is of another form.
        """
        file, _, name = text.rpartition(":")
        if not file.endswith(".py") or not name.isidentifier():
            raise OwnCodeError(f"must be FILE.py:NAME, such as mine.py:bandit, got {text!r}")
        return cls(Path((context or {}).get("folder", ""), file).absolute(), name)

    @property
    def label(self) -> str:
        """Readable, and without the folder of the file."""
        return f"{self.path.name}:{self.name}"

    def files(self) -> OwnFiles:
        """The file and the local files that it imports.

        Raises:
          OwnCodeError: one cannot be read or is no Python, or a local module is imported inside a function.
        """
        try:
            files = own_files(self.path)
        except SyntaxError as error:
            where = Path(error.filename or self.path).name
            raise OwnCodeError(f"{where}:{error.lineno or 1}: {error.msg}") from error
        except OSError as error:
            raise OwnCodeError(f"{self.path}: cannot be read: {error.strerror or error}") from error
        except ValueError as error:
            raise OwnCodeError(f"{self.path.name}: {error}") from error
        for late in files.late:
            raise OwnCodeError(
                f"{late.path.name}:{late.line}: imports the local module {late.module} inside a function: import it at the "
                "top of the file"
            )
        return files

    def digest(self) -> str:
        """A hash of the file and of the local files that it imports."""
        return self.files().digest

    def is_loaded(self) -> bool:
        """True if the file, as it is now, has run in this process.

        Raises:
          OwnCodeError: as for `files`.
        """
        return (self.path, self.digest()) in _LOADED

    def load(self) -> Any:
        """The object; the file runs once in a process until it, or a file that it imports, is edited.

        Raises:
          OwnCodeError: the file cannot be read or run, or does not define the name.
        """
        check_allowed(self.label)
        files = self.files()
        with _LOCK:
            key = (self.path, files.digest)
            if key not in _LOADED:
                with blamed_on(self.path):
                    _LOADED[key] = _executed(self.path, files)
            module = _LOADED[key]
        if not hasattr(module, self.name):
            things = {name: thing for name, thing in vars(module).items() if not isinstance(thing, ModuleType)}
            whose = {name: getattr(thing, "__module__", module.__name__) for name, thing in things.items()}
            known = [name for name in things if whose[name] == module.__name__ and not name.startswith("_")]
            raise OwnCodeError(f"{self.path.name} defines no {self.name!r}; it defines {', '.join(known) or 'nothing'}")
        return getattr(module, self.name)

    def blamed(self, *passed: type[Exception]) -> AbstractContextManager[None]:
        """Where its errors are told with the line of its file."""
        return blamed_on(self.path, *passed)


@dataclass(frozen=True)
class Registered(Loadable):
    """An environment that an installed package adds.

    Attributes:
      name: of its entry point.
    """

    name: str

    @property
    def label(self) -> str:
        """The name."""
        return self.name

    def load(self) -> Any:
        """Object that the entry point names.

        Raises:
          OwnCodeError: there is none of that name, or it cannot be loaded.
        """
        check_allowed(self.label)
        known = plugins.loaded(plugins.ENVIRONMENTS)
        for point in known:
            if point.name == self.name:
                if point.error:
                    raise OwnCodeError(str(point))
                return point.thing
        there = ", ".join(point.name for point in known) or "none"
        raise OwnCodeError(f"no installed package adds an environment {self.name!r}; there are: {there}")


_SEVERAL = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def is_factory(thing: object) -> bool:
    """True if an object is a class or a function, which makes what is wanted, rather than the thing itself."""
    return inspect.isclass(thing) or inspect.isroutine(thing)


@contextmanager
def blamed_on(path: Path | None, *passed: type[Exception]) -> Iterator[None]:
    """Whatever the user's file raises becomes one line that names the file and its line.

    Args:
      path: the file; None for code of an installed package.
      *passed: errors that are about the file already, and are left as they are.

    Raises:
      OwnCodeError: in place of any other error, but for the interrupt of a user.
    """
    try:
        yield
    except BaseException as error:
        if isinstance(error, (OwnCodeError, KeyboardInterrupt, *passed)):
            raise
        frames = traceback.extract_tb(error.__traceback__)
        own = frames if path is None else [f for f in frames if Path(f.filename).is_relative_to(path.parent)]
        where = f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else str(path and path.name)
        words = f": {error}" if str(error) else ""
        raise OwnCodeError(f"{where}: {type(error).__name__}{words}") from error


class _Beside(MetaPathFinder):
    """Finds local modules in one folder, whatever the path of the process is."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if not is_local(self._folder, name.partition(".")[0]):
            return None
        return PathFinder.find_spec(name, [str(self._folder)] if path is None else path, target)


def _executed(path: Path, files: OwnFiles) -> ModuleType:
    """Runs the file as a module of its own, and leaves no compiled file.

    Local modules are loaded anew and forgotten afterwards: another user's file may import others of the same name.
    """
    module = ModuleType(f"bandana_own_{path.stem}")
    module.__file__ = str(path)
    tops = {dotted.partition(".")[0] for dotted in files.modules}
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if _is_below(name, tops, path.parent)}
    finder, kept = _Beside(path.parent), sys.dont_write_bytecode
    sys.modules[module.__name__] = module  # dataclasses look their module up
    sys.meta_path.insert(0, finder)
    sys.dont_write_bytecode = True
    try:
        exec(compile(path.read_bytes(), str(path), "exec", dont_inherit=True), module.__dict__)
    finally:
        sys.dont_write_bytecode = kept
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if _is_below(name, tops, path.parent)]:
            del sys.modules[name]
        sys.modules.update(before)
    return module


def _is_below(name: str, tops: set[str], folder: Path) -> bool:
    top = name.partition(".")[0]
    return top in tops and is_local(folder, top)
