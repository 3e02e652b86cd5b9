"""Runs the product as if only one layer of it were installed: modules that other extras bring cannot be imported.

python -m tests.only_layer light bandana ui      # the command
python -m tests.only_layer pipeline import       # imports every module, and prints those that fail, one a line
"""

from __future__ import annotations

import importlib
import pkgutil
import sys

import bandana
from bandana import layers

INSIDE = {"light": (), "report": ("report",), "pipeline": ("report", "pipeline")}
"""Layer -> extras that it consists of; any other is one extra on top of the light installation."""


class Refused:
    """A finder that comes first, and finds no module of the given names."""

    def __init__(self, names):
        self.names = names

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def left_out(layer):
    """Top-level modules that an installation of the layer lacks."""
    inside = INSIDE.get(layer, (layer,))
    brought = {module for extra in inside for module in layers.EXTRAS[extra]}
    return {module for modules in layers.EXTRAS.values() for module in modules} - brought


def failing_imports():
    """Module of the product -> name of the module that its import lacks."""
    failed = {}
    for found in pkgutil.walk_packages(bandana.__path__, "bandana."):
        try:
            importlib.import_module(found.name)
        except ModuleNotFoundError as error:
            failed[found.name] = error.name
    return failed


def main(layer, what, *arguments):
    names = left_out(layer)
    has = layers.find_spec
    layers.find_spec = lambda name: None if name in names else has(name)  # a refused module is not installed
    sys.meta_path.insert(0, Refused(names))
    if what == "names":
        for name in (*bandana.__all__, *arguments):
            try:
                getattr(bandana, name)
            except layers.MissingExtra as error:
                print(f"{name}: {error}")
    elif what == "import":
        print(*(f"{module} {lacks}" for module, lacks in failing_imports().items()), sep="\n")
    else:
        from bandana.__main__ import main as command

        sys.argv = [what, *arguments]
        command()


if __name__ == "__main__":
    main(*sys.argv[1:])
