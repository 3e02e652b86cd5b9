"""What `FILE.py:NAME` names in a spec: loaded from its file in every process, and called with what it takes."""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import Any

from bandana.flows.keys.own_files import OwnFiles, is_local, own_files

_LOCK = RLock()
_LOADED: dict[tuple[Path, str], ModuleType] = {}
"""File and digest of all that counts -> the module; an edited file is loaded again."""


class OwnCodeError(ValueError):
    """A user's file that cannot be used; the message names file, line and what is wrong."""


@dataclass(frozen=True)
class OwnObject:
    """Something in a user's file.

    Attributes:
      path: the file, absolute.
      name: what it is called there.
    """

    path: Path
    name: str

    @classmethod
    def parse(cls, text: str, folder: Path) -> OwnObject:
        """Reads `FILE.py:NAME`; a relative file is looked up in the folder.

        Raises:
          OwnCodeError: the text is of another form.
        """
        file, _, name = text.rpartition(":")
        if not file.endswith(".py") or not name.isidentifier():
            raise OwnCodeError(f"must be FILE.py:NAME, such as mine.py:bandit, got {text!r}")
        return cls((folder / file).absolute(), name)

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
            found = own_files(self.path)
        except SyntaxError as error:
            where = Path(error.filename or self.path).name
            raise OwnCodeError(f"{where}:{error.lineno or 1}: {error.msg}") from error
        except OSError as error:
            raise OwnCodeError(f"{self.path}: cannot be read: {error.strerror or error}") from error
        except ValueError as error:
            raise OwnCodeError(f"{self.path.name}: {error}") from error
        for late in found.late:
            raise OwnCodeError(
                f"{late.path.name}:{late.line}: imports the local module {late.module} inside a function: import it at the "
                "top of the file"
            )
        return found

    def load(self) -> Any:
        """The object; the file runs once in a process until it, or a file that it imports, is edited.

        Raises:
          OwnCodeError: the file cannot be read or run, or does not define the name.
        """
        files = self.files()
        with _LOCK:
            key = (self.path, files.digest)
            if key not in _LOADED:
                with blamed_on(self.path):
                    _LOADED[key] = _executed(self.path, files)
            module = _LOADED[key]
        if not hasattr(module, self.name):
            known = [name for name, value in vars(module).items() if _is_own(name, value, module)]
            raise OwnCodeError(f"{self.path.name} defines no {self.name!r}; it defines {', '.join(known) or 'nothing'}")
        return getattr(module, self.name)

    def made(self, given: Mapping[str, Any], offered: Mapping[str, Any]) -> Any:
        """What the object makes of parameters, or the object itself with its fields replaced.

        Args:
          given: the user's parameters; all of them must be taken.
          offered: what is passed if it is asked for by name; None where the problem has no such thing.

        Raises:
          OwnCodeError: a parameter is not taken, one that is needed is not there, or the file's code raises an error.
        """
        found = self.load()
        self.check_parameters(given)
        with blamed_on(self.path):
            if not is_factory(found):
                return replace(found, **given) if given else found
            signature = inspect.signature(found).parameters
            known = {name: offered[name] for name in signature if name in offered and offered[name] is not None}
            taken = {**known, **given}
            for name, parameter in signature.items():
                if parameter.default is parameter.empty and parameter.kind not in _SEVERAL and name not in taken:
                    hint = "this environment has none" if name in offered else "write it under parameters"
                    raise OwnCodeError(f"{self.label} needs {name}: {hint}")
            return found(**taken)

    def check_parameters(self, given: Mapping[str, Any]) -> None:
        """Whether the object takes these parameters.

        Raises:
          OwnCodeError: it does not take one of them; the message names it and those that are taken.
        """
        found = self.load()
        if is_factory(found):
            signature = inspect.signature(found).parameters
            if any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature.values()):
                return
            known = [name for name, parameter in signature.items() if parameter.kind not in _SEVERAL]
        else:
            known = [field.name for field in fields(found) if field.init] if is_dataclass(found) else []
        for name in given:
            if name not in known:
                takes = f"it takes {', '.join(known)}" if known else "it takes none"
                raise OwnCodeError(f"{name}: no parameter of {self.label}; {takes}")


_SEVERAL = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def is_factory(found: Any) -> bool:
    """Whether an object is a class or a function, which makes what is wanted, rather than the thing itself."""
    return inspect.isclass(found) or inspect.isroutine(found)


@contextmanager
def blamed_on(path: Path, *passed: type[Exception]) -> Iterator[None]:
    """Whatever the user's file raises becomes one line that names the file and its line.

    Args:
      path: the file.
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
        lines = [f"{Path(f.filename).name}:{f.lineno}" for f in frames if Path(f.filename).is_relative_to(path.parent)]
        where = lines[-1] if lines else path.name
        said = f": {error}" if str(error) else ""
        raise OwnCodeError(f"{where}: {type(error).__name__}{said}") from error


def _is_own(name: str, value: Any, module: ModuleType) -> bool:
    """Whether a name of a module is none of its imports."""
    is_public = not name.startswith("_") and not isinstance(value, ModuleType)
    return is_public and getattr(value, "__module__", module.__name__) == module.__name__


class _Beside(MetaPathFinder):
    """Finds local modules in one folder, whatever the path of the process is."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if not is_local(self._folder, name.partition(".")[0]):
            return None
        return PathFinder.find_spec(name, [str(self._folder)] if path is None else path, target)


def _executed(path: Path, files: OwnFiles) -> ModuleType:
    """Runs the file as a module of its own, and leaves no compiled file.

    Local modules are loaded from its folder anew and are forgotten afterwards: another user's file may import others of the
    same name.
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
