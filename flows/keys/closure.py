"""The code that a result depends on: everything its makers import, as syntax trees.

Comments, docstrings, positions and formatting change nothing. A module counts as a whole, with everything that it imports in
turn, also inside functions. The exceptions are menus: modules that offer many things of which a result uses one, such as the
builders of all algorithms of a family. A menu is entered by name: only the definitions that are used count, with what those
definitions use. Nothing is imported here, and each file is parsed once in a process.
"""

from __future__ import annotations

import ast
import gc
import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from types import MethodType, ModuleType
from typing import Any, NamedTuple

from bandana.algorithms import plugins

PACKAGES = ("bandana.privacy_core", "bandana.algorithms", "bandana.audits", "bandana.flows")

_KINDS = "holds the fields and the behavior of several kinds of environments; a result uses one kind"
MENUS: Mapping[str, str] = {
    "bandana.audits.subjects": "builds each subject of the audit of everything; a result is made of one of them",
    "bandana.flows.problems.data_files": _KINDS,
    "bandana.flows.problems.environment": _KINDS,
    "bandana.flows.problems.kinds": _KINDS,
    "bandana.flows.problems.episodes": _KINDS,
    "bandana.flows.problems.finite_arms": _KINDS,
    "bandana.flows.problems.gymnasium_environments": _KINDS,
    "bandana.flows.texts.header": _KINDS,
    "bandana.flows.problems.kernel": _KINDS,
    "bandana.flows.problems.linear": _KINDS,
    "bandana.flows.problems.logged_data": _KINDS,
    "bandana.flows.problems.own": _KINDS,
    "bandana.flows.problems.real_arms": _KINDS,
    "bandana.flows.problems.sphere": _KINDS,
    "bandana.flows.spec.spec": "what a spec says stands in a key by value; of the module, results use the error alone",
}
"""Modules and packages that are entered by name, beside every `__init__`, and why; catalog entries are menus too."""

NOT_FOLLOWED: Mapping[str, str] = {
    "bandana.algorithms.catalog": "lists every algorithm: the functions of the chosen one are roots of their own",
    "bandana.audits.faults.catalog": "lists all planted faults: those of the chosen algorithm are roots of their own",
}
"""Modules whose imports are not followed, and why."""

_MENTIONING = "bandana.flows"
"""Only code of this floor knows environments and their specs, whose methods count where they are mentioned."""


class Name(NamedTuple):
    """A definition of a module; None stands for the module as a whole."""

    module: str
    name: str | None = None


class _Part(NamedTuple):
    """A piece of code: a definition of a menu, a method in one, or a whole module."""

    digest: str
    uses: frozenset[str]
    """Bare names."""
    mentions: frozenset[str]
    """Bare names, attributes, and strings that could be names."""
    imports: tuple[Name, ...]
    strings: frozenset[str]
    """Ends of the paths that its string constants could be."""


@dataclass(frozen=True)
class _Module:
    """A parsed module: its definitions and imports."""

    is_package: bool
    whole: _Part
    rest: _Part
    """Statements that define no name: they run at import."""
    definitions: Mapping[str, tuple[_Part, ...]]
    members: Mapping[str, Mapping[str, tuple[_Part, ...]]]
    """Class -> method -> its parts; the class's own part holds everything else of it."""
    bound: Mapping[str, Name]
    """Name -> what is imported under it."""


class Closure(NamedTuple):
    """The code that something depends on."""

    digest: str
    """SHA-256 over all parts, 64 hex digits."""
    parts: Mapping[str, str]
    """Label of each part, `module`, `module:name` or `module:Class.method`, and its SHA-256."""


class Code:
    """The sources of our packages, and of installed ones that add algorithms or environments.

    Args:
      places: package -> its folder; None: where the packages are installed.
    """

    def __init__(self, places: Mapping[str, Path] | None = None) -> None:
        self._places = dict(places) if places is not None else {name: _installed(name) for name in PACKAGES}
        self._knows_plugins = places is None
        self._modules: dict[str, _Module | None] = {}
        self._closures: dict[frozenset[Name], Closure] = {}
        self._data: dict[str, dict[str, Path]] = {}

    def closure(self, roots: Iterable[Name]) -> Closure:
        """Closure of all that the roots depend on."""
        key = frozenset(roots)
        if key not in self._closures:
            for name, _ in key:  # a root may be defined outside our packages, such as in a user's file
                if self._package_of(name) is None and self._modules.get(name) is None:
                    file = getattr(sys.modules.get(name), "__file__", None)
                    if file is not None and file.endswith(".py"):
                        self._modules[name] = _parsed(name, Path(file).read_bytes(), is_package=False)
            was_on = gc.isenabled()
            gc.disable()  # a tree is no garbage: collecting meanwhile takes three times as long
            try:
                self._closures[key] = _Search(self.module, self._data_of).run(key)
            finally:
                if was_on:
                    gc.enable()
        return self._closures[key]

    def module(self, name: str) -> _Module | None:
        """A module of ours, or of a root outside; None where it is neither, or is no Python file."""
        if name not in self._modules:
            self._modules[name] = None
            if (package := self._package_of(name)) is not None:
                place = self._places[package].joinpath(*name.split(".")[package.count(".") + 1 :])
                for path in (place / "__init__.py", place.with_name(f"{place.name}.py")):
                    if path.is_file():
                        self._modules[name] = _parsed(name, path.read_bytes(), path.name == "__init__.py")
                        break
        return self._modules[name]

    def _package_of(self, name: str) -> str | None:
        """The package of ours in which a module lies; None where it is not ours."""
        top = name.partition(".")[0]
        if self._knows_plugins and top not in self._places and top in plugins.packages():
            spec = find_spec(top)
            if spec is not None and spec.submodule_search_locations:
                self._places[top] = Path(spec.submodule_search_locations[0])
        return next((package for package in self._places if _lies_in(name, package)), None)

    def _data_of(self, name: str) -> Mapping[str, Path]:
        """The data files of the module's package, by name."""
        top = self._package_of(name)
        if top is None:
            return {}
        if top not in self._data:
            paths = sorted(self._places[top].rglob("*.*"))
            self._data[top] = {path.name: path for path in paths if path.suffix != ".py" and "__pycache__" not in path.parts}
        return self._data[top]


def roots_of(value: Any) -> Iterator[Name]:
    """The definitions that a value is made of: functions with what they close over, classes, and objects field by field."""
    if isinstance(value, ModuleType):
        yield Name(value.__name__)
    elif isinstance(value, Path):
        yield Name(str(value))  # a user's file, see `own_files`
    elif isinstance(value, partial):
        yield from roots_of((value.func, value.args, tuple(value.keywords.values())))
    elif isinstance(value, MethodType):
        yield from roots_of((value.__func__, value.__self__))
    elif isinstance(value, type):
        yield from (_name_of(base) for base in value.__mro__ if _is_traced(base.__module__))
    elif callable(value) and hasattr(value, "__code__"):
        if _is_traced(value.__module__):
            yield _name_of(value)
        held = [cell.cell_contents for cell in value.__closure__ or ()]
        yield from roots_of((*held, *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()))
    elif hasattr(value, "py_func"):  # compiled by Numba
        yield from roots_of(value.py_func)
    elif isinstance(value, Mapping):
        yield from roots_of(tuple(value.values()))
    elif isinstance(value, tuple | list | set | frozenset) and type(value).__module__ == "builtins":
        for item in value:
            yield from roots_of(item)
    elif _is_traced(type(value).__module__):
        yield from roots_of(type(value))
        if is_dataclass(value):
            yield from roots_of(tuple(getattr(value, field.name) for field in fields(value)))


def _name_of(value: Any) -> Name:
    return Name(value.__module__, value.__qualname__.split(".")[0])


def _is_traced(module: str) -> bool:
    """True if a module is neither of the standard library nor of another package."""
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    if module.partition(".")[0] in plugins.packages():
        return True
    return any(_lies_in(module, package) for package in PACKAGES) or (
        file.endswith(".py") and "site-packages" not in file and not file.startswith(sys.base_prefix)
    )


def _lies_in(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def _installed(package: str) -> Path:
    spec = find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


class _Search:
    """One walk from roots to everything that they use."""

    def __init__(self, module: Callable[[str], _Module | None], data_of: Callable[[str], Mapping[str, Path]]) -> None:
        self._module, self._data_of = module, data_of
        self._parts: dict[str, str] = {}
        self._seen: set[Name] = set()
        self._mentions: set[str] = set()
        self._classes: set[Name] = set()
        self._waiting: list[Name] = []

    def run(self, roots: Iterable[Name]) -> Closure:
        self._waiting = sorted(roots, key=str)
        n_parts = -1
        while self._waiting or len(self._parts) > n_parts:  # a member that is taken may mention another one
            n_parts = len(self._parts)
            while self._waiting:
                self._enter(self._waiting.pop())
            self._take_mentioned_members()
        text = "".join(f"{label} {digest}\n" for label, digest in sorted(self._parts.items()))
        return Closure(hashlib.sha256(text.encode()).hexdigest(), dict(sorted(self._parts.items())))

    def _enter(self, wanted: Name) -> None:
        if wanted in self._seen or wanted.module in NOT_FOLLOWED:
            return
        self._seen.add(wanted)
        name, wanted_name = wanted
        module = self._module(name)
        if module is None:
            return
        parent = name.rpartition(".")[0]
        if parent:
            self._waiting.append(Name(parent, ""))  # importing a module runs the packages that it lies in
        if not (module.is_package or _is_menu(name)):
            self._take(name, name, module, module.whole)
            return
        self._take(f"{name}:", name, module, module.rest)
        if wanted_name == "":
            return
        if wanted_name is None:
            self._waiting += [Name(name, each) for each in (*module.definitions, *module.bound)]
        elif wanted_name in module.definitions:
            for part in module.definitions[wanted_name]:
                self._take(f"{name}:{wanted_name}", name, module, part)
            if wanted_name in module.members:
                self._classes.add(wanted)
        elif wanted_name in module.bound:
            target = module.bound[wanted_name]
            # Which module a name is taken from decides what runs.
            self._parts[f"{name}:{wanted_name}"] = f"{target.module}:{target.name}"
            self._waiting.append(target)
        elif module.is_package and self._module(f"{name}.{wanted_name}") is not None:
            self._waiting.append(Name(f"{name}.{wanted_name}"))
        else:
            self._waiting.append(Name(name))  # made in a way that is not understood: everything counts

    def _take(self, label: str, name: str, module: _Module, part: _Part) -> None:
        before = self._parts.get(label)
        self._parts[label] = part.digest if before in (None, part.digest) else f"{before}+{part.digest}"
        self._waiting += part.imports
        if _lies_in(name, _MENTIONING):
            self._mentions |= part.mentions
        if module.is_package or _is_menu(name):
            self._waiting += [Name(name, use) for use in part.uses if use in module.definitions or use in module.bound]
        for file, path in self._data_of(name).items() if part.strings else ():
            if file in part.strings:
                self._parts[f"{name}:{file}"] = hashlib.sha256(path.read_bytes()).hexdigest()

    def _take_mentioned_members(self) -> None:
        for name, cls in sorted(self._classes, key=str):
            module = self._module(name)
            assert module is not None
            assert cls is not None
            for member, parts in module.members[cls].items():
                label = f"{name}:{cls}.{member}"
                if label not in self._parts and member in self._mentions:
                    for part in parts:
                        self._take(label, name, module, part)


def _is_menu(name: str) -> bool:
    # Of the builders of a family's algorithms, a result is made by one.
    return name in MENUS or name.rpartition(".")[0] in MENUS or name.endswith("entries")


@lru_cache(maxsize=1024)
def _parsed(name: str, text: bytes, is_package: bool) -> _Module:
    return _Parser(name, is_package).module(text)


class _Parser:
    """Splits one file into its parts."""

    def __init__(self, name: str, is_package: bool) -> None:
        self._name, self._is_package = name, is_package
        self._package = name if is_package else name.rpartition(".")[0]

    def module(self, text: bytes) -> _Module:
        tree = ast.parse(text, self._name)
        definitions: dict[str, list[_Part]] = {}
        members: dict[str, dict[str, tuple[_Part, ...]]] = {}
        bound: dict[str, Name] = {}
        rest: list[ast.stmt] = []
        for statement in tree.body if self._is_package or _is_menu(self._name) else ():
            match statement:
                case ast.Import() | ast.ImportFrom():
                    bound |= dict(imported_names(statement, self._package))
                    continue
                case ast.ClassDef(name=name):
                    statement, methods = _opened(statement)
                    members[name] = {method: tuple(map(self._part, parts)) for method, parts in methods.items()}
                    names = [name]
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    names = [name]
                case ast.Assign(targets=targets) if all(isinstance(target, ast.Name) for target in targets):
                    names = [target.id for target in targets if isinstance(target, ast.Name)]
                case ast.AnnAssign(target=ast.Name(id=name)):
                    names = [name]
                case _:
                    names = []
            for name in names:
                definitions.setdefault(name, []).append(self._part(statement))
            if not names:
                rest.append(statement)
        by_name = {name: tuple(parts) for name, parts in definitions.items()}
        return _Module(self._is_package, self._part(*tree.body), self._part(*rest), by_name, members, bound)

    def _part(self, *statements: ast.stmt) -> _Part:
        reader = TreeReader(self._package)
        reader.block(statements)
        return _Part(
            hashlib.sha256("\0".join(reader.text).encode("utf-8", "surrogatepass")).hexdigest(),
            frozenset(reader.uses),
            frozenset(reader.mentions | reader.uses),
            tuple(dict.fromkeys(reader.imports)),
            frozenset(reader.strings),
        )


def _opened(cls: ast.ClassDef) -> tuple[ast.ClassDef, dict[str, list[ast.stmt]]]:
    """A class without its methods, and its methods.

    What Python calls by itself stays, and fields whose values stand in a key do not count.
    """
    kept: list[ast.stmt] = []
    methods: dict[str, list[ast.stmt]] = {}
    for statement in cls.body:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if not name.startswith("__"):
                methods.setdefault(name, []).append(statement)
            case ast.AnnAssign(value=None) | ast.AnnAssign(value=ast.Call(func=ast.Name(id="Field"))):
                continue
            case _:
                kept.append(statement)
    return ast.ClassDef(cls.name, cls.bases, cls.keywords, kept, cls.decorator_list), methods


class TreeReader:
    """Reads a syntax tree as text without docstrings and positions, and notes what it uses.

    Attributes:
      text: the tree, piece by piece.
      uses: bare names.
      mentions: attributes, and strings that could be names.
      imports: what import statements name, also inside functions.
      strings: ends of the paths that string constants could be.
    """

    def __init__(self, package: str) -> None:
        self._package = package
        self.text: list[str] = []
        self.uses: set[str] = set()
        self.mentions: set[str] = set()
        self.imports: list[Name] = []
        self.strings: set[str] = set()

    def block(self, statements: Iterable[object]) -> None:
        """Reads statements, one after another."""
        self.text.append("[")
        for item in statements:
            if isinstance(item, ast.AST):
                self.node(item)
            else:
                self.text.append(repr(item))
        self.text.append("]")

    def node(self, node: ast.AST) -> None:
        """Reads one node with all that it holds."""
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                return  # a docstring, of a module, a class, a function or an attribute
            case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
                return
            case ast.Import() | ast.ImportFrom():
                self.imports += [target for _, target in imported_names(node, self._package)]
            case ast.Name(id=name):
                self.uses.add(name)
            case ast.Attribute(attr=name):
                self.mentions.add(name)
            case ast.Constant(value=str() as text):
                if text.isidentifier():
                    self.mentions.add(text)
                elif "." in text:
                    self.strings.add(text.rpartition("/")[2])
        self.text.append(type(node).__name__)
        for field in node._fields:
            value: object = getattr(node, field, None)
            if field in ("annotation", "returns") and isinstance(node, ast.arg | ast.FunctionDef | ast.AsyncFunctionDef):
                if isinstance(value, ast.AST):  # never run: it is text, and its names are no uses
                    reader = TreeReader(self._package)
                    reader.node(value)
                    self.text += reader.text
            elif isinstance(value, list):
                self.block(value)
            elif isinstance(value, ast.AST):
                self.node(value)
            else:
                self.text.append(repr(value))


def imported_names(statement: ast.Import | ast.ImportFrom, package: str) -> Iterator[tuple[str, Name]]:
    """Names of an import statement, with what each stands for."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            yield alias.asname or alias.name.partition(".")[0], Name(alias.name)
        return
    module = statement.module or ""
    if statement.level:
        above = package.split(".")[: len(package.split(".")) - statement.level + 1]
        module = ".".join((*above, module)) if module else ".".join(above)
    for alias in statement.names:
        yield alias.asname or alias.name, Name(module, None if alias.name == "*" else alias.name)
