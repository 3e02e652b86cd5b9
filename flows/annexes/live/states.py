"""States of algorithms as bytes: named tuples of the product that hold arrays and plain values, and no code.

A text in JSON names the tuples and where each array stands; the arrays follow as they lie in memory.
"""

from __future__ import annotations

import json
from pkgutil import resolve_name

import numpy as np

_PACKAGES = ("bandana.algorithms.", "bandana.privacy_core.")
"""Where the classes of states are defined; no other name in a store is looked up."""
_KINDS = "biuf"


def encode(state: object) -> bytes:
    """A state as bytes.

    Raises:
      ValueError: it holds something that is neither a named tuple of an algorithm, an array of numbers, nor a plain value.
    """
    arrays: list[np.ndarray] = []
    head = json.dumps(_described(state, arrays), separators=(",", ":")).encode()
    return len(head).to_bytes(4, "big") + head + b"".join(array.tobytes() for array in arrays)


def _described(part: object, arrays: list[np.ndarray]) -> object:
    if isinstance(part, np.ndarray):
        if part.dtype.kind not in _KINDS:
            raise ValueError(f"a state holds an array of {part.dtype}, which cannot be kept")
        arrays.append(np.ascontiguousarray(part))
        return {"a": [part.dtype.str, list(part.shape)]}
    if isinstance(part, np.generic):
        return {"n": [part.dtype.str, part.item()]}
    if isinstance(part, tuple) and hasattr(part, "_fields"):
        kind = type(part)
        name = f"{kind.__module__}:{kind.__qualname__}"
        if not name.startswith(_PACKAGES):
            raise ValueError(f"a state holds {name}, which is no named tuple of an algorithm")
        return {"t": name, "v": [_described(item, arrays) for item in part]}
    if isinstance(part, tuple | list):
        return {"l": type(part).__name__, "v": [_described(item, arrays) for item in part]}
    if part is None or isinstance(part, bool | int | float | str):
        return {"p": part}
    raise ValueError(f"a state holds {type(part).__name__}, which cannot be kept")


def decode(content: bytes) -> tuple[object, ...]:
    """The state that `encode` wrote, a tuple, in memory of its own.

    Raises:
      ValueError: the bytes are no state.
    """
    length = 4 + int.from_bytes(content[:4], "big")
    try:
        tree = json.loads(content[4:length])
        state, rest = _built(tree, content[length:])
    except (KeyError, TypeError, AttributeError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"the bytes are no state: {error}") from error
    if rest or not isinstance(state, tuple):
        raise ValueError(f"the bytes are no state: {len(rest)} are left over")
    return state


def _built(tree: dict[str, list[object]], rest: bytes) -> tuple[object, bytes]:
    if "a" in tree:
        kind = np.dtype(str(tree["a"][0]))
        shape: tuple[int, ...] = tuple(tree["a"][1])  # type: ignore[arg-type]
        size = kind.itemsize * int(np.prod(shape, dtype=np.int64))
        if len(rest) < size or kind.kind not in _KINDS:
            raise ValueError("the bytes are no state: an array is cut off")
        return np.frombuffer(rest[:size], kind).reshape(shape).copy(), rest[size:]
    if "n" in tree:
        return np.dtype(str(tree["n"][0])).type(tree["n"][1]), rest
    if "p" in tree:
        return tree["p"], rest
    items = []
    for item in tree["v"]:
        value, rest = _built(item, rest)  # type: ignore[arg-type]
        items.append(value)
    if "l" in tree:
        return (tuple(items) if str(tree["l"]) == "tuple" else items), rest
    name = str(tree["t"])
    kind_of_state = resolve_name(name) if name.startswith(_PACKAGES) else None
    if not (isinstance(kind_of_state, type) and issubclass(kind_of_state, tuple) and hasattr(kind_of_state, "_make")):
        raise ValueError(f"the bytes are no state: {name!r} is no named tuple of an algorithm")
    return kind_of_state._make(items), rest
