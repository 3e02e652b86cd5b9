"""Specs that came with evidence: whatever they name, nothing of their sender's runs, and no file or server of ours is read.

A report quotes its spec, and a spec may name files of code and of data, a database, or an environment of any installed
package. Whoever verifies a report has not chosen these. So a spec of unknown origin is parsed only if the catalog holds all
that it names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import get_args

from bandana.flows.own.code import nothing_runs
from bandana.flows.problems import kinds as environment_kinds
from bandana.flows.problems.environment import EnvironmentFields
from bandana.flows.spec.spec import Spec, parse_spec
from bandana.flows.texts import yaml_text
from bandana.flows.texts.mistakes import SpecError, printable, shortened

_SOURCE = "spec"
_FILES = ("tuning", "baseline")
"""Fields of a spec that name files."""


class NamesOwn(SpecError):  # noqa: N818  (it says what the spec does)
    """A spec of unknown origin that names more than the catalog holds."""


def parse(text: str) -> Spec:
    """The spec, if all that it names is part of this product.

    Raises:
      NamesOwn: it names code, data or a server.
      SpecError: it is no spec.
    """
    _, tree = yaml_text.read(text, _SOURCE)
    for what in _own(tree):
        raise NamesOwn(f"its spec names {shortened(printable(what))}: give your own with --spec")
    with nothing_runs():
        return parse_spec(text, _SOURCE, Path())


def _own(tree: object) -> Iterator[str]:
    """Names in a spec that the catalog does not hold; a tree of another form is left to the parser, behind the wall."""
    if not isinstance(tree, dict):
        return
    for field in _FILES:
        if tree.get(field) is not None:
            yield f"a file in its field {field}"
    environments, algorithms = tree.get("environment"), tree.get("algorithms")
    for item in environments if isinstance(environments, list) else [environments]:
        kind = item.get("kind") if isinstance(item, dict) else None
        if kind not in _shipped():
            yield f"an environment of kind {kind!r}"
    for item in algorithms if isinstance(algorithms, list) else []:
        if isinstance(item, dict) and "file" in item:
            yield f"the code {item['file']!r}"


def _shipped() -> set[str]:
    """Kinds of environments that need nothing but this product."""
    items: Iterable[type[EnvironmentFields]] = environment_kinds.CLASSES
    return {kind for item in items if item.is_shipped for kind in get_args(item.model_fields["kind"].annotation)}
