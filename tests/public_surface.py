"""The public surface of the product as plain data, which `tests/data/public_surface.json` keeps.

python -m tests.public_surface      # writes the file anew: first say in CHANGELOG.md what changed
"""

import importlib
import inspect
import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import get_args

from typer.main import get_command

from bandana import layers
from bandana.algorithms.catalog import CATALOG
from bandana.audits.documents.form import json_schema
from bandana.audits.evidence import archive
from bandana.flows.cli import app
from bandana.flows.commands import lookup, options
from bandana.flows.spec.schema import json_schema as schema_of_spec

PLACE = Path(__file__).parent / "data" / "public_surface.json"
MODULES = ("bandana", "bandana.testing", "bandana.primitives", "bandana.privacy_core")


def signature(subject):
    """Names of parameters with their kinds and whether they may be left out; types are checked by type checkers."""
    try:
        parameters = inspect.signature(subject).parameters.values()
    except (TypeError, ValueError):
        return None
    marks = {
        inspect.Parameter.KEYWORD_ONLY: "*",
        inspect.Parameter.VAR_POSITIONAL: "*args ",
        inspect.Parameter.VAR_KEYWORD: "** ",
    }
    return [
        marks.get(each.kind, "") + each.name + ("" if each.default is inspect.Parameter.empty else "=")
        for each in parameters
    ]


def described(subject):
    """What users can do with a public object."""
    if not inspect.isclass(subject):
        return signature(subject) if callable(subject) else type(subject).__name__
    members = {
        name: "attribute" if not callable(member) else signature(member)
        for name, member in inspect.getmembers(subject)
        if not name.startswith("_") and not hasattr(object, name) and not hasattr(Exception, name)
    }
    kept = [field.name for field in fields(subject)] if is_dataclass(subject) else []
    return {"call": signature(subject), "fields": kept, "members": members}


def flattened(schema):
    """Paths of the properties of a JSON schema, with the types that each may have, and what stands where one is left out."""
    definitions, lines = schema.get("$defs", {}), set()

    def walk(node, path, seen):
        if "$ref" in node:
            name = node["$ref"].rpartition("/")[2]
            if name in seen:
                return
            node, seen = definitions[name], seen | {name}
        for key in ("anyOf", "oneOf", "allOf"):
            for each in node.get(key, ()):
                walk(each, path, seen)
        lines.add(f"{path}: {node['const'] if 'const' in node else node.get('type', '')}".rstrip(": "))
        if "default" in node:
            lines.add(f"{path} = {json.dumps(node['default'], sort_keys=True)}")
        for name, each in node.get("properties", {}).items():
            walk(each, f"{path}.{name}{'' if name in node.get('required', ()) else '?'}", seen)
        for key, mark in (("items", "[]"), ("additionalProperties", ".*")):
            if isinstance(node.get(key), dict):
                walk(node[key], path + mark, seen)

    walk(schema, "", frozenset())
    return sorted(line for line in lines if line)


def commands(command):
    """Command -> its arguments and options, those of groups below it too."""
    if below := getattr(command, "commands", None):
        return {name: commands(each) for name, each in sorted(below.items())}
    return sorted(max(each.opts, key=len) for each in command.params if each.name != "help")


def surface():
    """Everything that semantic versioning is about here."""
    documents = {kind: json_schema(lookup.kinds()[kind].form) for kind in get_args(lookup.Described) if kind != "spec"}
    modules = {name: importlib.import_module(name) for name in MODULES}
    codes = {"failure": options.FAILURE, "mistake": options.USER_MISTAKE, "differs": options.DIFFERS}
    return {
        "modules": {
            name: {each: described(getattr(module, each)) for each in sorted(module.__all__)}
            for name, module in modules.items()
        },
        "commands": commands(get_command(app)),
        "exit codes": {"success": 0, **codes},
        "extras": sorted(layers.EXTRAS),
        "evidence": archive.SCHEMA,
        "spec": flattened(schema_of_spec()),
        "parameters": {
            entry.label: {name: each.default for name, each in entry.parameters.items()}
            for entry in CATALOG
        },
        "documents": {kind: flattened(schema) for kind, schema in documents.items()},
    }


def differences(kept, now, place=""):
    """Lines on what was added, removed and changed, each with its place."""
    if isinstance(kept, dict) and isinstance(now, dict):
        for name in sorted(kept.keys() | now.keys()):
            where = f"{place}/{name}"
            if name not in now or name not in kept:
                yield f"{'removed' if name in kept else 'added'}: {where}"
            else:
                yield from differences(kept[name], now[name], where)
    elif isinstance(kept, list) and isinstance(now, list):
        yield from (f"removed: {place} {each}" for each in kept if each not in now)
        yield from (f"added: {place} {each}" for each in now if each not in kept)
    elif kept != now:
        yield f"changed: {place}: {kept!r} is now {now!r}"


if __name__ == "__main__":
    PLACE.write_text(json.dumps(surface(), indent=1, sort_keys=True) + "\n")
