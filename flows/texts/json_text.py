"""JSON files that Bandana writes and people keep, edit and merge: read so that nothing is guessed at."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:  # heavy, and commands import this file
    from pydantic import BaseModel

Model = TypeVar("Model", bound="BaseModel")
JsonObject = dict[str, Any]
"""An object of a JSON document, whose fields its reader knows."""


def read_model(model: type[Model], content: bytes) -> Model:
    """Reads a JSON text as a model; `true` is no number, `"1"` no number, and no field stands twice.

    Raises:
      pydantic.ValidationError: it is no JSON, or does not fit the model.
      ValueError: a field stands twice.
    """
    parsed = model.model_validate_json(content, strict=True)
    json.loads(content, object_pairs_hook=_once)
    return parsed


def _once(pairs: list[tuple[str, object]]) -> None:
    names = [name for name, _ in pairs]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"the field {twice[:80]!r} stands twice: remove one")
