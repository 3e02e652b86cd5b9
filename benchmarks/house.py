"""Counts what makes the house hard to read, beside the limit that tests hold and the goal.

    python -m benchmarks.house

The limit of a count only ever falls (that of all lines may rise, with a decision): `tests/test_house.py` fails when a count
exceeds it. Lines are those of Python files,
with docstrings. The core is all that is left without the annexes (`flows/annexes`), the families of algorithms and the kinds
of problems: what somebody reads who wants to know how a run becomes a report, before one family and the annex at hand.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("flows", "privacy_core", "algorithms", "audits")
ANNEXES = "flows/annexes"
FAMILIES = (
    "algorithms/bandits/", "algorithms/rl/", "algorithms/regression/", "algorithms/rkhs/", "algorithms/mdp/",
    "algorithms/papers/", "algorithms/environments/", "audits/faults/", "flows/problems/",
)  # fmt: skip
"""A family of algorithms is a folder, with its planted faults in a file, and the mathematics and printed formulas that only
such families stand on; a kind of problem is a file of its data and a file of its fields. Of both one reads those at hand."""
SHARED = {
    "algorithms/environments": ("data_sets", "tables", "episodes", "drawn", "answers_numba"),
    "audits/faults": (
        "fault", "releases", "sums", "regression", "randomized", "places", "late", "wrapped", "catalog",
    ),
    "flows/problems": ("environment", "kinds", "data_files", "facts"),
}  # fmt: skip
"""Files of those folders that are of no family or kind alone: they belong to the core."""
ONE_EACH = ("audits/faults/", "audits/reporting/sections/", "algorithms/papers/")
"""Folders where a kind has a file by rule, however small: faults of a family, a section of a report, formulas of a paper."""
ADAPTER = "_private.py"
"""How a file ends that holds nothing but what uses private names of another project, which is a rule too."""
_QUESTIONS = ("What ", "Whether ", "How ", "Which ", "Of ")
_VAGUE = ("found", "told", "asked", "said")
_UNTYPED = ("Any", "JsonObject")
_SMALL = 60


class Count(NamedTuple):
    """One count of the house."""

    what: str
    now: float
    limit: float
    """What tests hold."""
    goal: float


class File(NamedTuple):
    """A module of the product."""

    path: str
    tree: ast.Module
    n_lines: int

    @property
    def name(self) -> str:
        """Dotted name."""
        return "bandana." + self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @property
    def is_package(self) -> bool:
        """Whether it is the file of a folder."""
        return self.path.endswith("__init__.py")


@cache
def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a file, which is read once; nobody changes it."""
    return ast.parse(path.read_text("utf-8"))


@cache
def nodes_of(tree: ast.AST) -> tuple[ast.AST, ...]:
    """All nodes of a tree; each tree is walked once, however many counts ask."""
    return tuple(ast.walk(tree))


class House:
    """The files of a checkout.

    Args:
      root: of the checkout.
    """

    def __init__(self, root: Path = ROOT) -> None:
        paths = sorted(path for folder in PRODUCT for path in (root / folder).rglob("*.py"))
        texts = {path.relative_to(root).as_posix(): path.read_text("utf-8") for path in paths}
        self.files = [File(path, tree_of(root / path), text.count("\n")) for path, text in texts.items()]

    def n_lines(self, *left_out: str) -> int:
        """Lines of all files, but for those below some folders."""
        return sum(file.n_lines for file in self.files if not file.path.startswith(left_out))

    def n_core_lines(self) -> int:
        """Lines of all files but annexes, families and kinds of problems."""
        shared = {f"{folder}/{name}.py" for folder, names in SHARED.items() for name in names}
        families = sum(file.n_lines for file in self.files if file.path.startswith(FAMILIES) and file.path not in shared)
        return self.n_lines(ANNEXES) - families

    @cached_property
    def rooms(self) -> Counter[str]:
        """Files of each folder."""
        return Counter(file.path.rpartition("/")[0] for file in self.files if not file.is_package)

    @cached_property
    def importers(self) -> dict[str, set[str]]:
        """Dotted name -> names of the modules that import it or something from it."""
        names = {file.name for file in self.files}
        importers: dict[str, set[str]] = {name: set() for name in names}
        for file in self.files:
            for target in _imported(file.tree):
                known = target if target in names else target.rpartition(".")[0]
                if known in names and known != file.name:
                    importers[known].add(file.name)
        return importers

    def small_files(self) -> list[str]:
        """Files of few lines that one other file imports, but for those that a rule keeps apart (`ONE_EACH`, `ADAPTER`)."""
        return [
            file.path
            for file in self.files
            if file.n_lines < _SMALL and not file.is_package and len(self.importers[file.name]) == 1
            if not file.path.startswith(ONE_EACH) and not file.path.endswith(ADAPTER)
        ]

    def annexes_in_core(self) -> list[str]:
        """Imports of annexes by the core, and of one annex by another."""
        place = f"bandana.{ANNEXES.replace('/', '.')}."
        return [
            f"{user} -> {name}"
            for name, users in self.importers.items()
            if name.startswith(place)
            for user in sorted(users)
            if user.split(".")[:4] != name.split(".")[:4]
        ]

    def share_of_any(self, *folders: str) -> float:
        """Percentage of annotations that hold `Any`, by this name or another."""
        annotations = [one for file in self.files if file.path.startswith(folders) for one in _annotations(file.tree)]
        vague = sum(any(isinstance(n, ast.Name) and n.id in _UNTYPED for n in ast.walk(one)) for one in annotations)
        return 100 * vague / max(1, len(annotations))

    def questions(self) -> list[str]:
        """Docstrings that begin like a question."""
        return [file.path for file in self.files for text in _docstrings(file.tree) if text.startswith(_QUESTIONS)]

    def vague_names(self) -> int:
        """Variables whose name says no kind."""
        return sum(
            isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in _VAGUE
            for file in self.files
            for node in nodes_of(file.tree)
        )

    def long_functions(self) -> float:
        """Percentage of functions longer than 50 lines."""
        lengths = [(node.end_lineno or node.lineno) - node.lineno for file in self.files for node in _functions(file.tree)]
        return 100 * sum(length > 50 for length in lengths) / len(lengths)

    def most_parameters(self) -> int:
        """Parameters of the function that has most."""
        return max(
            len([*node.args.args, *node.args.kwonlyargs, *node.args.posonlyargs])
            for file in self.files
            for node in _functions(file.tree)
        )


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in nodes_of(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in nodes_of(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _annotations(tree: ast.Module) -> Iterator[ast.expr]:
    for node in nodes_of(tree):
        if isinstance(node, ast.AnnAssign | ast.arg) and node.annotation is not None:
            yield node.annotation
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            yield node.returns


def _docstrings(tree: ast.Module) -> Iterator[str]:
    """Docstrings of modules, classes and functions, and those below attributes."""
    for node in nodes_of(tree):
        for statement in getattr(node, "body", []) if not isinstance(node, ast.Lambda | ast.IfExp) else []:
            match statement:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield text


def counts(house: House) -> list[Count]:
    """All counts, with limits and goals."""
    rooms = [n_files for place, n_files in house.rooms.items() if place not in SHARED]
    return [
        Count("lines of all", house.n_lines(), 93_200, 73_000),
        Count("lines of the core", house.n_core_lines(), 43_712, 45_000),
        Count("files of the fullest folder", max(rooms), 15, 15),
        Count("folders of more than 15 files", sum(n_files > 15 for n_files in rooms), 0, 0),
        Count("lines of the longest file", max(file.n_lines for file in house.files), 500, 500),
        Count(f"files below {_SMALL} lines with one importer", len(house.small_files()), 0, 0),
        Count("% of functions above 50 lines", house.long_functions(), 0.5, 0.5),
        Count("parameters of the longest signature", house.most_parameters(), 20, 12),
        Count("% of annotations with Any in audits", house.share_of_any("audits/"), 1.43, 4),
        Count("% of annotations with Any in flows", house.share_of_any("flows/"), 3.32, 4),
        Count("docstrings that begin like a question", len(house.questions()), 0, 0),
        Count("variables named found, told, asked or said", house.vague_names(), 1, 0),
        Count("imports of an annex by the core or another annex", len(house.annexes_in_core()), 0, 0),
    ]


def main() -> None:
    """Prints the counts; the exit code is 1 if one exceeds its limit."""
    rows = counts(House())
    for what, now, limit, goal in rows:
        state = "ABOVE ITS LIMIT" if now > limit else "reached" if now <= goal else ""
        print(f"{what:52} {now:>9,.4g}  limit {limit:>8,.6g}  goal {goal:>8,.6g}  {state}".rstrip())
    raise SystemExit(any(count.now > count.limit for count in rows))


if __name__ == "__main__":
    main()
