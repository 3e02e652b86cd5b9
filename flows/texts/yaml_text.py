"""The YAML of a spec, read with limits: what multiplies, nests without end, stands twice or means another number is refused.

YAML 1.1 is larger than a spec needs, and each of its surprises has cost somebody a night: anchors that stand for a billion
nodes, the later of two equal keys, `12:30` for 750, `017` for 15. Each is refused with its line, before pydantic sees it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from bandana.flows.texts.mistakes import SpecError, shortened, shown

_MOST_CHARACTERS, _MOST_NODES, _MOST_LEVELS, _LONGEST, _LONGEST_NUMBER = 1 << 20, 100_000, 40, 10_000, 320
_LOADER: type[yaml.CSafeLoader] | type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_READ = {
    f"{_TAG}null": "nothing", f"{_TAG}bool": "true or false", f"{_TAG}int": "a whole number", f"{_TAG}float": "a number",
    f"{_TAG}timestamp": "a date", f"{_TAG}str": "text",
}  # fmt: skip
_MERGE = f"{_TAG}merge"
_OCTAL = re.compile(r"[-+]?0[0-9_]+")
_GROUPED = re.compile(r"[-+]?[1-9][0-9]{0,2}(_[0-9]{3})+(\.[0-9]+)?")
_UNREADABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_CONSTRUCTOR = yaml.constructor.SafeConstructor()


def read(text: str, source: str) -> tuple[yaml.Node, Any]:
    """The nodes of a text, which know their lines, and what they say.

    Args:
      text: one YAML document.
      source: what mistakes are reported under.

    Raises:
      SpecError: the text is no YAML, or goes beyond what a spec may hold; the message is one line.
    """
    if len(text) > _MOST_CHARACTERS:
        raise SpecError(f"{source}: a spec has at most {_MOST_CHARACTERS:,} characters, got {len(text):,}")
    try:
        _check_size(yaml.parse(text, Loader=_LOADER), source)
        tree = yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or error
        position = getattr(error, "position", None)
        n_line = mark.line + 1 if mark else text.count("\n", 0, position) + 1 if isinstance(position, int) else 1
        if "\t" in (text.splitlines()[n_line - 1 : n_line] or [""])[0]:
            problem = "a tab; indent with blanks"
        raise SpecError(f"{source}:{n_line}: not valid YAML: {shortened(' '.join(str(problem).split()))}") from error
    if tree is None:
        return yaml.ScalarNode(f"{_TAG}null", ""), None
    return tree, _value(tree, "", source)


def _check_size(events: Iterator[yaml.Event], source: str) -> None:
    """Counts nodes as they would be after every alias is replaced by what it stands for, and how deep they lie."""
    open_nodes: list[tuple[str | None, int]] = []  # anchor and number of nodes of each collection that is not at its end
    sizes: dict[str, int] = {}

    def count(event: yaml.Event, n_nodes: int) -> None:
        if open_nodes:
            open_nodes[-1] = open_nodes[-1][0], open_nodes[-1][1] + n_nodes
        if n_nodes > _MOST_NODES or (open_nodes and open_nodes[-1][1] > _MOST_NODES):
            raise _mistake(event, source, f"a spec has at most {_MOST_NODES:,} values, counting what aliases (*) stand for")

    for event in events:
        if isinstance(event, yaml.ScalarEvent):
            if event.anchor:
                sizes[event.anchor] = 1
            count(event, 1)
        elif isinstance(event, yaml.AliasEvent):
            name = str(event.anchor)
            if any(anchor == name for anchor, _ in open_nodes):
                raise _mistake(event, source, f"*{name[:80]} stands within itself")
            count(event, sizes.get(name, 1))
        elif isinstance(event, yaml.CollectionStartEvent):
            open_nodes.append((event.anchor, 1))
            if len(open_nodes) > _MOST_LEVELS:
                raise _mistake(event, source, f"a spec nests at most {_MOST_LEVELS} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, n_nodes = open_nodes.pop()
            if anchor:
                sizes[anchor] = n_nodes
            count(event, n_nodes)


def _mistake(event: yaml.Event, source: str, message: str) -> SpecError:
    assert event.start_mark is not None  # it was read from a text
    return SpecError(f"{source}:{event.start_mark.line + 1}: {message}")


def _value(node: yaml.Node, field: str, source: str) -> object:
    """Value of a node; `field` is its place, such as `environment.means[1]`."""
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node, field, source)
    if isinstance(node, yaml.SequenceNode):
        _check_tag(node, f"{_TAG}seq", field, source)
        return [_value(item, f"{field}[{place}]", source) for place, item in enumerate(node.value)]
    _check_tag(node, f"{_TAG}map", field, source)
    return _mapping(node, field, source)


def _mapping(node: yaml.Node, field: str, source: str) -> dict[object, object]:
    entries: dict[object, object] = {}
    merged: dict[object, object] = {}
    lines: dict[object, int] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if key_node.tag == _MERGE:
            several = value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
            for each in several:
                if not isinstance(each, yaml.MappingNode):
                    raise SpecError(f"{source}:{line}: {field or 'spec'}: << takes a mapping, or a list of them")
                merged = {**_mapping(each, field, source), **merged}
            continue
        if not isinstance(key_node, yaml.ScalarNode):
            raise SpecError(f"{source}:{line}: {field or 'spec'}: the name of a field is a word, not a list or a mapping")
        key = _scalar(key_node, field, source)
        if key in lines:
            name = shortened(f"{field}.{key}".lstrip("."))
            raise SpecError(f"{source}:{line}: {name}: stands twice, first in line {lines[key]}; remove one")
        if not str(key).isprintable():
            raise SpecError(
                f"{source}:{line}: {field or 'spec'}: the name of a field is printable, got {shortened(repr(key))}"
            )
        lines[key] = line
        entries[key] = _value(value_node, f"{field}.{key}".lstrip("."), source)
    return {**merged, **entries}


def _scalar(node: yaml.ScalarNode, field: str, source: str) -> object:
    text = str(node.value)
    where = f"{source}:{node.start_mark.line + 1}: {shortened(field) or 'spec'}:"
    if len(text) > _LONGEST:
        raise SpecError(f"{where} a value has at most {_LONGEST:,} characters, got {len(text):,}: {shortened(repr(text))}")
    if match := _UNREADABLE.search(text):
        raise SpecError(f"{where} a value is text without control characters, got {match.group()!r} in it")
    if node.tag == f"{_TAG}null" and text.lower() not in ("", "~", "null"):
        raise SpecError(f"{where} must be nothing, got {shortened(repr(text))}")
    if node.tag == _MERGE or (node.tag == f"{_TAG}value" and text == "="):
        return text
    if node.tag not in _READ:
        raise SpecError(f"{where} the tag {shortened(repr(node.tag))} is not read here: leave it out")
    if node.tag in (f"{_TAG}int", f"{_TAG}float"):
        if len(text) > _LONGEST_NUMBER:
            raise SpecError(f"{where} a number has at most {_LONGEST_NUMBER} digits, got {len(text):,}: {shortened(text)}")
        if "_" in text and not _GROUPED.fullmatch(text):
            raise SpecError(f"{where} digits are grouped by threes, as in 1_000: write {shown(text)} without _, or quote it")
        if ":" in text:
            raise SpecError(f"{where} YAML reads {text} as a number to base 60: write it as one number, or quote it")
        if _OCTAL.fullmatch(text):
            raise SpecError(f"{where} YAML reads {text} as a number to base 8: write it without the leading 0, or quote it")
    try:
        return _CONSTRUCTOR.yaml_constructors[node.tag](_CONSTRUCTOR, node)
    except (ValueError, ArithmeticError, LookupError, TypeError, AttributeError, yaml.YAMLError):
        raise SpecError(f"{where} must be {_READ[node.tag]}, got {shortened(repr(text))}") from None


def _check_tag(node: yaml.Node, expected: str, field: str, source: str) -> None:
    if node.tag != expected:
        where = f"{source}:{node.start_mark.line + 1}: {shortened(field) or 'spec'}:"
        raise SpecError(f"{where} the tag {shortened(repr(node.tag))} is not read here: leave it out")
