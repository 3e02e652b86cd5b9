"""Every one-line mutation of a source file that the operators can make.

An operator takes a node of the syntax tree and yields edits of its text: a comparison turned, a root dropped, a keyword left
out. Docstrings, messages, annotations, decorators and whatever only prints are left alone.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

Edit = tuple[ast.AST, str]
"""A node whose text is replaced, and what replaces it."""
Types = Mapping[str, tuple[str, ...]]
"""What functions take, by name."""

COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"), ast.FloorDiv: ("//", "*"),
    ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"),
}  # fmt: skip
TWINS = {
    one: other
    for pair in (("min", "max"), ("minimum", "maximum"), ("argmin", "argmax"), ("floor", "ceil"), ("any", "all"))
    for one, other in (pair, pair[::-1])
}
DROPPED = ("sqrt", "square", "abs", "fabs", "absolute", "clip")
QUIET = {
    "print", "echo", "secho", "warn", "debug", "info", "warning", "error", "exception", "isinstance", "issubclass", "cast",
}  # fmt: skip
"""Calls whose arguments are left alone: they print, or they say a type."""
DISPLAY = {"__repr__", "__str__", "describe", "about", "summary", "lines", "markdown", "show", "explain"}
"""Functions that only write text for people."""
IDLE_KEYWORDS = {
    "dtype", "strict", "check", "stacklevel", "encoding", "indent", "ensure_ascii", "copy", "order", "description", "title",
    "help", "name", "daemon", "maxsize", "doc", "label", "exist_ok", "text", "flush", "file", "style", "errors", "invalid",
    "divide", "over", "under",
}  # fmt: skip
"""Keywords without which most calls do the same."""
SHAPES = ("axis", "ndim", "ndmin", "keepdims")
"""Keywords whose values are left alone: another one mostly fails at once."""
_NUMBER = re.compile(r"\bint\b")
_KERNEL = re.compile(r"\bn?jit\b|_kernel\b|vectorize\b")


class Mutation(NamedTuple):
    """One change of one line.

    Attributes:
      path: of the file, relative to the root.
      function: qualified name of the innermost named function or class around it; empty at the top of the module.
      operator: what was done.
      before: the line without its indentation.
      after: the line with the change.
      occurrence: which of several equal changes in the function, from 0.
      line: number of the line, from 1.
      statement: (line, column) of the innermost statement around it.
      runs_at_import: whether the statement is executed when the module is imported, and not in a function.
      kernel: name of the compiled function around it; empty outside such functions.
      constant: name of the module's constant that the statement sets; empty elsewhere.
    """

    path: str
    function: str
    operator: str
    before: str
    after: str
    occurrence: int
    line: int
    statement: tuple[int, int]
    runs_at_import: bool
    kernel: str
    constant: str

    @property
    def name(self) -> str:
        """Stays the same as long as the function's line does, wherever it moves."""
        again = f" #{self.occurrence}" if self.occurrence else ""
        return f"{self.path}::{self.function}: {self.before} => {self.after}{again}"

    def apply(self, source: str) -> str:
        """The mutated source."""
        lines = source.split("\n")
        old = lines[self.line - 1]
        if old.strip() != self.before:
            raise ValueError(f"line {self.line} of {self.path} is {old.strip()!r}, not {self.before!r}")
        lines[self.line - 1] = old[: len(old) - len(old.lstrip())] + self.after
        return "\n".join(lines)


def mutations(path: str, source: str, types: Types | None = None) -> list[Mutation]:
    """All mutations of a file; no two make the same change, and a few may not compile (`compiles`).

    Args:
      path: of the file, relative to the root.
      source: its text.
      types: what functions take, for those of other files (`declared_types`).
    """
    types = {**declared_types([source]), **(types or {})}
    found: list[Mutation] = []
    seen: set[tuple[int, str]] = set()
    times: Counter[tuple[str, str, str]] = Counter()
    lines = source.split("\n")
    for place in _places(ast.parse(source)):
        for name, operator in OPERATORS.items():
            more = (types,) if operator is swap_arguments else ()
            for target, text in operator(place.node, lines, *more):
                after = _edited(lines, target, text)
                if after is None or (target.lineno, after) in seen:  # type: ignore[attr-defined]
                    continue
                number = int(target.lineno)  # type: ignore[attr-defined]
                seen.add((number, after))
                change = (place.function, lines[number - 1].strip(), after.strip())
                found.append(
                    Mutation(
                        path, place.function, name, *change[1:], times[change], number, place.statement,
                        place.runs_at_import, place.kernel, place.constant,
                    )
                )  # fmt: skip
                times[change] += 1
    return found


def compiles(mutation: Mutation, source: str) -> bool:
    """Whether the mutated source is Python, and not the same program."""
    try:
        return ast.dump(ast.parse(mutation.apply(source))) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False


class _Place(NamedTuple):
    node: ast.AST
    function: str
    statement: tuple[int, int]
    runs_at_import: bool
    kernel: str
    constant: str


def is_kernel(node: ast.AST) -> bool:
    """Whether a function is compiled: its decorators are Numba's, or one of the module's that is called `_kernel`."""
    return isinstance(node, ast.FunctionDef) and any(_KERNEL.search(ast.unparse(part)) for part in node.decorator_list)


def _places(tree: ast.Module) -> Iterator[_Place]:
    """Every node that may be mutated, with what surrounds it."""

    def walk(node: ast.AST, place: _Place) -> Iterator[_Place]:
        if isinstance(node, ast.stmt):
            constant = _constant(node) if place.runs_at_import and not place.function else ""
            place = place._replace(statement=(node.lineno, node.col_offset), constant=constant)
        yield place._replace(node=node)
        inner = place
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if node.name in DISPLAY:
                return
            inner = place._replace(function=f"{place.function}.{node.name}".lstrip("."))
        for field, value in ast.iter_fields(node):
            within = place if field != "body" else inner
            if field == "body" and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                within = inner._replace(runs_at_import=False, kernel=node.name if is_kernel(node) else place.kernel)
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not _is_left_alone(node, field, child):
                    yield from walk(child, within)

    yield from walk(tree, _Place(tree, "", (0, 0), True, "", ""))


def _constant(node: ast.stmt) -> str:
    """The only name that a statement sets; empty if it does something else."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else ""


def _is_left_alone(parent: ast.AST, field: str, child: ast.AST) -> bool:
    if field in ("annotation", "returns", "decorator_list", "bases", "type_params"):
        return True
    if isinstance(child, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom | ast.Assert):
        return True
    if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
        return True
    if isinstance(parent, ast.Module) and isinstance(child, ast.Assign) and isinstance(child.value, ast.BinOp):
        return isinstance(child.value.op, ast.BitOr)  # a name of a type
    if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
        return True
    if isinstance(child, ast.keyword) and child.arg in SHAPES:
        return True
    return isinstance(child, ast.Call) and _called(child) in QUIET


def _called(call: ast.Call) -> str:
    return (
        call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id if isinstance(call.func, ast.Name) else ""
    )


def _columns(line: str, node: ast.AST) -> tuple[int, int]:
    """A node's columns in characters; the syntax tree counts bytes."""
    raw = line.encode()
    start, end = int(node.col_offset), int(node.end_col_offset)  # type: ignore[attr-defined]
    return len(raw[:start].decode()), len(raw[:end].decode())


def _is_on_one_line(node: ast.AST) -> bool:
    return bool(node.lineno == node.end_lineno)  # type: ignore[attr-defined]


def _text(lines: list[str], node: ast.AST) -> str:
    line = lines[node.lineno - 1]  # type: ignore[attr-defined]
    start, end = _columns(line, node)
    return line[start:end]


def _edited(lines: list[str], target: ast.AST, text: str) -> str | None:
    """The line with the node's text replaced; None if the node goes over several lines, or nothing changes."""
    if not _is_on_one_line(target):
        return None
    line = lines[target.lineno - 1]  # type: ignore[attr-defined]
    start, end = _columns(line, target)
    changed = line[:start] + text + line[end:]
    return None if changed == line else changed


def _inside(lines: list[str], whole: ast.AST, left: ast.AST, right: ast.AST, old: str, new: str) -> Iterator[Edit]:
    """Replaces the operator between two operands."""
    if not _is_on_one_line(whole):
        return
    line = lines[whole.lineno - 1]  # type: ignore[attr-defined]
    start, end = _columns(line, whole)
    a, b = _columns(line, left)[1], _columns(line, right)[0]
    between = re.sub(rf"(?<![\w<>=!*/]){re.escape(old)}(?![\w<>=*/])", new, line[a:b], count=1)
    yield whole, line[start:a] + between + line[b:end]


def _grouped(lines: list[str], node: ast.AST) -> str:
    simple = isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.Constant)
    return _text(lines, node) if simple else f"({_text(lines, node)})"


def compare(node: ast.AST, lines: list[str]) -> Iterator[Edit]:
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        for left, kind, right in zip(sides, node.ops, sides[1:], strict=False):
            yield from _inside(lines, node, left, right, *COMPARISONS[type(kind)])


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def arithmetic(node: ast.AST, lines: list[str]) -> Iterator[Edit]:
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC and not (_is_text(node.left) or _is_text(node.right)):
        yield from _inside(lines, node, node.left, node.right, *ARITHMETIC[type(node.op)])
    if isinstance(node, ast.AugAssign) and type(node.op) in ARITHMETIC and not _is_text(node.value):
        old, new = ARITHMETIC[type(node.op)]
        yield from _inside(lines, node, node.target, node.value, f"{old}=", f"{new}=")


def _is_number(node: ast.AST, value: object = None) -> bool:
    is_number = isinstance(node, ast.Constant) and type(node.value) in (int, float)
    return is_number and (value is None or node.value == value)  # type: ignore[attr-defined]


def off_by_one(node: ast.AST, lines: list[str]) -> Iterator[Edit]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub) and _is_on_one_line(node):
        if _is_number(node.right, 1):
            yield node, _grouped(lines, node.left)
        elif _is_number(node.left, 1) and isinstance(node.op, ast.Add):
            yield node, _grouped(lines, node.right)


def drop_power(node: ast.AST, lines: list[str]) -> Iterator[Edit]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and _is_on_one_line(node):
        yield node, _grouped(lines, node.left)


def drop_call(node: ast.AST, lines: list[str]) -> Iterator[Edit]:
    """sqrt(x), abs(x), np.clip(x, a, b), x.clip(a, b), interval.clip(x), each to x."""
    if isinstance(node, ast.Call) and _called(node) in DROPPED and _is_on_one_line(node):
        is_method = isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) not in ("np", "math", "numpy")
        if is_method and len(node.args) != 1:
            yield node, _grouped(lines, node.func.value)  # type: ignore[attr-defined]
        elif node.args:
            yield node, _grouped(lines, node.args[0])


def twin(node: ast.AST, lines: list[str]) -> Iterator[Edit]:
    if isinstance(node, ast.Call) and _called(node) in TWINS and _is_on_one_line(node.func):
        text = _text(lines, node.func)
        name = _called(node)
        yield node.func, text[: len(text) - len(name)] + TWINS[name]


def logic(node: ast.AST, lines: list[str]) -> Iterator[Edit]:
    if isinstance(node, ast.BoolOp):
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            yield from _inside(lines, node, left, right, old, new)


def negate(node: ast.AST, lines: list[str]) -> Iterator[Edit]:
    if isinstance(node, ast.If | ast.While | ast.IfExp) and _is_on_one_line(node.test):
        test = node.test
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            yield test, _text(lines, test.operand)
        elif not (isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Is | ast.IsNot | ast.Eq | ast.NotEq)):
            yield test, f"(not ({_text(lines, test)}))"


def drop_check(node: ast.AST, lines: list[str]) -> Iterator[Edit]:
    """A condition that refuses something never holds."""
    if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise) and not node.orelse and _is_on_one_line(node.test):
        yield node.test, "False"


def drop_minus(node: ast.AST, lines: list[str]) -> Iterator[Edit]:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not | ast.Invert) and _is_on_one_line(node):
        yield node, _grouped(lines, node.operand)


def constant(node: ast.AST, lines: list[str]) -> Iterator[Edit]:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield node, str(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value <= 1024:
        yield node, {0: "1", 1: "2", 2: "1"}.get(node.value, str(node.value + 1))
    elif isinstance(node, ast.Constant) and isinstance(node.value, float) and 1e-6 < node.value < 1e6:
        yield node, str(2 * node.value)


def swap_arguments(node: ast.AST, lines: list[str], types: Types) -> Iterator[Edit]:
    """Only where both arguments have the same type, as the called function declares it: others would fail at once."""
    if isinstance(node, ast.Call) and len(node.args) >= 2 and _is_on_one_line(node):
        one, other = node.args[:2]
        declared = types.get(_called(node), ())[:2]
        if len(declared) == 2 and declared[0] == declared[1] and ast.dump(one) != ast.dump(other):
            line, (start, end) = lines[node.lineno - 1], _columns(lines[node.lineno - 1], node)
            (a, b), (c, d) = _columns(line, one), _columns(line, other)
            yield node, line[start:a] + line[c:d] + line[b:c] + line[a:b] + line[d:end]


def declared_types(sources: Iterable[str]) -> Types:
    """Types of the parameters of every function by its name, as declared; names with several declarations are left out."""
    found: dict[str, tuple[str, ...]] = {}
    for source in sources:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef):
                given = [argument for argument in node.args.args if argument.arg not in ("self", "cls")]
                types = tuple(_NUMBER.sub("float", ast.unparse(a.annotation)) if a.annotation else "" for a in given)
                found[node.name] = types if found.get(node.name, types) == types else ()
    return {name: types for name, types in found.items() if "" not in types[:2]}


def drop_keyword(node: ast.AST, lines: list[str]) -> Iterator[Edit]:
    if not (isinstance(node, ast.Call) and _is_on_one_line(node)):
        return
    line, (start, end) = lines[node.lineno - 1], _columns(lines[node.lineno - 1], node)
    for given in node.keywords:
        if given.arg is None or given.arg in IDLE_KEYWORDS:
            continue
        a, b = _columns(line, given)
        rest = line[b:end]
        head = line[start:a]
        if head.rstrip().endswith(","):
            yield node, head.rstrip()[:-1] + rest
        else:
            yield node, head + re.sub(r"^\s*,\s*", "", rest)


def turn_slice(node: ast.AST, lines: list[str]) -> Iterator[Edit]:
    if isinstance(node, ast.Slice) and _is_on_one_line(node):
        text = _text(lines, node)
        if node.step is not None and node.lower is None and node.upper is None:
            yield node, ":"
        elif node.step is None and node.lower is not None and node.upper is None:
            yield node, ":" + _text(lines, node.lower)
        elif node.step is None and node.upper is not None and node.lower is None and text.startswith(":"):
            yield node, _text(lines, node.upper) + ":"


OPERATORS: dict[str, Callable[..., Iterator[Edit]]] = {
    "comparison turned": compare,
    "arithmetic turned": arithmetic,
    "off by one": off_by_one,
    "power dropped": drop_power,
    "root, absolute value or clip dropped": drop_call,
    "minimum for maximum": twin,
    "and for or": logic,
    "condition negated": negate,
    "check dropped": drop_check,
    "sign or not dropped": drop_minus,
    "constant changed": constant,
    "arguments swapped": swap_arguments,
    "keyword dropped": drop_keyword,
    "slice turned": turn_slice,
}
"""What can be done to a line, by name."""
