"""A spec as it is given from Python: a file, a YAML text, or a mapping."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from bandana.flows.spec.spec import Spec, load_spec, parse_spec
from bandana.flows.texts.mistakes import SpecError

_PLAIN = (str, int, float, bool, type(None))


def read(spec: str | Path | Mapping[str, Any]) -> tuple[Spec, str]:
    """The checked spec, and its text.

    Args:
      spec: the place of a YAML file; a YAML text, which has several lines; or its fields, of which arrays become lists.
        Places of files in a text or in fields are relative to the current directory.

    Raises:
      SpecError: there is no such file, or a field is wrong; every mistake is listed.
    """
    if isinstance(spec, Mapping):
        text = str(yaml.safe_dump(_plain(spec, ""), sort_keys=False, allow_unicode=True))
        try:
            return parse_spec(text, "spec", Path.cwd()), text
        except SpecError as error:
            lines = (re.sub(r"^spec:\d+: ", "", line) for line in str(error).splitlines())
            raise SpecError("\n".join(lines)) from None
    if isinstance(spec, str) and "\n" in spec.strip():
        return parse_spec(spec, "spec", Path.cwd()), spec
    if not isinstance(spec, str | Path):
        raise SpecError(f"spec: give the place of a YAML file, a YAML text or a dict, got {type(spec).__name__}")
    path = Path(spec)
    return load_spec(path), path.read_text(encoding="utf-8")


def _plain(value: Any, place: str) -> Any:
    """Returns a value as YAML can write it: arrays as lists, numbers of NumPy as numbers, paths as text."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(each, f"{place}.{name}" if place else str(name)) for name, each in value.items()}
    if isinstance(value, list | tuple | range):
        return [_plain(each, f"{place}[{i}]") for i, each in enumerate(value)]
    advice = "; an algorithm of your own is named by its file" if callable(value) or place.startswith("algorithms") else ""
    raise SpecError(f"{place or 'spec'}: must be made of numbers, text, lists and dicts, got {type(value).__name__}{advice}")
