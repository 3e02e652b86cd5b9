"""The JSON schema of a spec, for editors that complete and check YAML."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import TypeAdapter

from bandana.algorithms import catalog
from bandana.algorithms.entry import Entry
from bandana.flows.spec.algorithms import type_of
from bandana.flows.spec.spec import Spec
from bandana.flows.texts.json_text import JsonObject

_GRIDS = ("environment", "model", "alpha", "mu", "epsilon", "delta", "calibrations", "formats")
"""Fields that take one value or a list."""


def json_schema() -> dict[str, object]:
    """The schema of a spec; the fields of an algorithm of the catalog follow from its entries."""
    schema = Spec.model_json_schema()
    algorithm = schema["$defs"]["AlgorithmSpec"]
    for definition in (schema, *schema["$defs"].values()):
        for name, field in definition.get("properties", {}).items():
            if name in _GRIDS:
                _one_or_several(field)
    shared = algorithm["properties"]
    each = [_schema_of(name, shared) for name in catalog.names()]
    schema["$defs"]["AlgorithmSpec"] = {"description": algorithm["description"], "oneOf": each}
    _one_or_several(schema["$defs"]["OwnAlgorithmSpec"]["properties"]["parameters"]["additionalProperties"])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Bandana experiment", **schema}


def _schema_of(name: str, shared: Mapping[str, Mapping[str, object]]) -> dict[str, object]:
    """One algorithm: what all have in common, its trust models, and its parameters."""
    entries = catalog.of_name(name)
    models = list(dict.fromkeys(entry.privacy_model for entry in entries))
    calibrations = list(dict.fromkeys(each for entry in entries for each in entry.calibrations))
    fields: dict[str, object] = {
        "algorithm": {**shared["algorithm"], "const": name},
        "model": {**_one_or_more({"enum": models}), "description": shared["model"]["description"]},
    }
    if calibrations:
        fields["calibrations"] = {
            **_one_or_more(_calibration(calibrations, entries)),
            "description": shared["calibrations"]["description"],
        }
        fields |= {name: shared[name] for name in ("privacy", "replays")}
    for parameter in {each.name: each for entry in entries for each in entry.parameters.values()}.values():
        items = TypeAdapter(type_of(parameter)).json_schema()
        about = f"{parameter.meaning} Default: {parameter.shown_default}."
        fields[parameter.name] = {**_one_or_more(items), "description": about}
    return {"type": "object", "properties": fields, "required": ["algorithm"], "additionalProperties": False}


def _calibration(names: list[str], entries: list[Entry]) -> dict[str, object]:
    """A calibration by name, or a mixture with an option for each part, where calibrations have parts."""
    mixtures = []
    for options in (entry.part_options for entry in entries):
        parts = {part: {"enum": list(each)} for part, each in options.items()}
        mixture = {"type": "object", "properties": parts, "required": list(parts), "additionalProperties": False}
        if parts and mixture not in mixtures:
            mixtures.append(mixture)
    return {"anyOf": [{"enum": names}, *mixtures]} if mixtures else {"enum": names}


def _one_or_more(items: object) -> dict[str, object]:
    return {"anyOf": [items, {"type": "array", "items": items, "minItems": 1}]}


def _one_or_several(field: JsonObject) -> None:
    """One value stands for a list of one wherever several are allowed."""
    if field.get("type") == "array":
        about = {key: field.pop(key) for key in ("description", "title", "default") if key in field}
        several = dict(field)
        field.clear()
        field.update(anyOf=[several["items"], several], **about)
    elif "anyOf" in field:
        field["anyOf"] = [part for option in field["anyOf"] for part in (option, option.get("items")) if part]
