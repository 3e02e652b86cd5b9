"""Takes any object apart into labels and numbers, and names what it could not read.

Audits compare what they see of outputs and of released states. An attribute that no text shows, the type of an array or the
sign of a zero carry data as well as a number does: each is a leaf here, and what has no leaf is called unread.
"""

from __future__ import annotations

import logging
import math
import re
import sys
import types
import weakref
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:  # processes of a single call import this file, and little else
    from bandana.algorithms.protocol import FloatArray

MOST_LEAVES = 20_000
"""Leaves of one object; what lies behind them is not read."""
_DEEPEST = 32
_EXACT = 2**53
_NEGATIVE_ZERO = -1e-300
"""Stands for minus zero, which equals zero as a number."""
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_NAMED = type | types.FunctionType | types.BuiltinFunctionType | types.MethodType | types.ModuleType | logging.Logger
_DESCRIPTORS = types.MemberDescriptorType | types.GetSetDescriptorType
_PLAIN = {int, float, bool, type(None)}
_BUILT_IN = {list, tuple, set, frozenset, dict, str, bytes, bytearray}
_BOOKKEEPING = {"pandas._libs.internals.BlockValuesRefs"}
"""Types that hold nothing but references to what is read elsewhere."""
_TABLES = {"DataFrame", "Series", "Index", "RangeIndex"}
_KEPT_BY_PANDAS = {"_mgr", "_attrs", "_flags", "_name", "_data", "_cache", "_references", "_id", "_range", "_item_cache"}
"""Attributes of tables of pandas that `_Walk` knows, or that hold nothing of their own."""
_CONTENTS = (list, tuple, set, frozenset, dict, str, bytes, bytearray, int, float, complex, np.ndarray, np.generic)


class Leaf(NamedTuple):
    """A part of an object that is not made of others.

    Attributes:
      path: where it stands.
      label: its type, shape and length, or its text.
      numbers: (n,) what it holds; None where it holds none.
      is_read: whether all of it was read.
    """

    path: str
    label: str
    numbers: FloatArray | None = None
    is_read: bool = True


@dataclass(frozen=True)
class Walked:
    """An object that was taken apart elsewhere, such as in another process."""

    parts: list[Leaf]


def leaves(value: object, path: str = "") -> Iterator[Leaf]:
    """The leaves of anything: of arrays, containers and text, and of all other objects by their attributes and state."""
    if isinstance(value, Walked):
        yield from value.parts
        return
    walk = _Walk()
    result = walk.parts(value, path)
    yield from islice(result, MOST_LEAVES)
    if next(result, None) is not None:
        yield Leaf(f"{path}#rest", f"more than {MOST_LEAVES} parts", is_read=False)


def as_floats(numbers: Any) -> FloatArray:
    """Numbers of an array as float64, with the remainder behind them where float64 does not hold them exactly.

    Args:
      numbers: any shape, of a real type.

    Returns:
      (n,) or (2n,), in the order of the array.
    """
    flat = np.ravel(numbers)
    return np.concatenate([as_float(flat), *remainder(flat)])


def as_float(numbers: Any) -> FloatArray:
    """Numbers of any shape as float64; minus zero, which equals zero, as a number next to it."""
    result = np.asarray(numbers.astype(np.float64))
    return np.where((result == 0) & np.signbit(result), _NEGATIVE_ZERO, result) if numbers.dtype.kind == "f" else result


def remainder(numbers: Any) -> tuple[FloatArray, ...]:
    """Remainders that float64 leaves out of an array, of its shape; empty where it leaves out nothing."""
    is_wide = numbers.dtype.kind in "iu" and numbers.dtype.itemsize == 8 and numbers.size
    if is_wide and (numbers.max() > _EXACT or numbers.min() < -_EXACT):
        return ((numbers % 2**32).astype(np.float64),)
    if numbers.dtype.kind == "f" and numbers.dtype.itemsize > 8:
        return ((numbers - numbers.astype(np.float64)).astype(np.float64),)
    return ()


class _Walk:
    """One pass through an object; what is open already is named and not entered again."""

    def __init__(self) -> None:
        self._open: set[int] = set()

    def parts(self, value: Any, path: str) -> Iterator[Leaf]:
        """Leaves of whatever this is."""
        kind = type(value)
        if kind is float or kind is bool:
            yield Leaf(path, kind.__name__, _one(float(value)))
        elif kind is int:
            yield Leaf(path, "int", _whole(value))
        elif value is None or value is Ellipsis or value is NotImplemented:
            yield Leaf(path, str(value))
        elif kind is str:
            yield from _text(value, path, "str")
        elif kind is complex:
            yield Leaf(path, "complex", as_floats(np.array([value.real, value.imag])))
        elif id(value) in self._open:
            yield Leaf(path, "itself")
        elif len(self._open) >= _DEEPEST:
            yield Leaf(path, f"more than {_DEEPEST} levels", is_read=False)
        else:
            self._open.add(id(value))
            yield from self._content(value, path)
            self._open.discard(id(value))

    def _content(self, value: Any, path: str) -> Iterator[Leaf]:
        if isinstance(value, np.ndarray | np.generic):
            yield from self._array(value, path)
        elif isinstance(value, bytes | bytearray):
            yield from _text(bytes(value).decode("latin-1"), path, name_of(type(value)))
        elif isinstance(value, str):
            yield from _text(str.__str__(value), path, "str")
            yield Leaf(f"{path}#type", name_of(type(value)))
        elif isinstance(value, dict):
            yield from self._mapping(value, path)
        elif isinstance(value, list | tuple | set | frozenset):
            yield from self._sequence(value, path)
        elif isinstance(value, int | float | complex):
            yield from self.parts(value.__pos__(), f"{path}#value")
        elif isinstance(value, _NAMED):
            yield from self._named(value, path)
            return
        elif isinstance(value, property | staticmethod | classmethod):
            for name in ("fget", "fset", "fdel", "__func__"):
                yield from self.parts(getattr(value, name, None), f"{path}.{name}")
            return
        elif isinstance(value, weakref.ReferenceType):
            yield Leaf(path, "a weak reference")
            return
        elif isinstance(value, array | memoryview):
            yield Leaf(f"{path}#type", name_of(type(value)))
            yield from self._array(np.asarray(value), path)
            return
        elif _is_plain_table(value):
            yield from self._table(value, path)
            return
        elif (tensor := _tensor(value)) is not None:
            yield Leaf(f"{path}#tensor", f"{value.dtype} {value.device} {value.requires_grad}")
            yield from self.parts(tensor, path)
            return
        if isinstance(value, np.ndarray | np.generic):
            if isinstance(value, np.ndarray) and type(value) is not np.ndarray:
                yield from self._kept(attributes(value), path)
        elif type(value) not in _BUILT_IN:
            yield from self._object(value, path)

    def _array(self, value: Any, path: str) -> Iterator[Leaf]:
        form = f"{name_of(type(value))} {value.dtype.str} {value.shape}"
        match value.dtype.kind:
            case "b" | "i" | "u" | "f":
                yield Leaf(path, form, as_floats(value))
            case "c":
                yield Leaf(path, form, np.concatenate([as_floats(value.real), as_floats(value.imag)]))
            case "m" | "M":
                yield Leaf(path, form, as_floats(np.asarray(value).view(np.int64)))
            case "V" if value.dtype.names:
                yield Leaf(path, f"{form} {value.dtype}")
                for name in value.dtype.names:
                    yield from self.parts(value[name], f"{path}[{name!r}]")
            case "V":
                yield from _text(value.tobytes().decode("latin-1"), path, form)
            case _:
                yield Leaf(path, form)
                for place, item in enumerate(np.ravel(value).tolist()):
                    yield from self.parts(item, f"{path}[{place}]")

    def _mapping(self, value: dict[object, object], path: str) -> Iterator[Leaf]:
        keys = list(dict.keys(value))
        yield Leaf(path, f"{name_of(type(value))} {len(keys)}", np.array([float(len(keys))]))
        if set(map(type, keys)) <= {str}:
            yield Leaf(f"{path}#keys", " ".join(map(repr, keys)))
        else:
            yield from self.parts(keys, f"{path}#keys")
        if (numbers := _numbers(list(dict.values(value)))) is not None:
            yield numbers._replace(path=f"{path}#values")
            return
        for place, key in enumerate(keys):
            name = f".{key}" if type(key) is str else f"[{key!r}]" if type(key) in _PLAIN else f"#{place}"
            yield from self.parts(dict.__getitem__(value, key), path + name)

    def _sequence(self, value: Any, path: str) -> Iterator[Leaf]:
        items = sorted(value, key=repr) if isinstance(value, set | frozenset) else list(value)
        form = f"{name_of(type(value))} {len(items)}"
        if (numbers := _numbers(items)) is not None:
            yield numbers._replace(path=path, label=f"{form} {numbers.label}")
            return
        yield Leaf(path, form, np.array([float(len(items))]))
        for place, item in enumerate(items):
            yield from self.parts(item, f"{path}[{place}]")

    def _table(self, value: Any, path: str) -> Iterator[Leaf]:
        """A table, a column or an index of pandas, without the caches in it: its labels, remarks and columns."""
        yield Leaf(path, f"{name_of(type(value))} {value.shape} {getattr(value, 'flags', '')}")
        for name in ("name", "attrs", "index", "columns"):
            yield from self.parts(getattr(value, name, None), f"{path}.{name}")
        for place in range(value.shape[1] if value.ndim == 2 else 1):
            column = value.iloc[:, place] if value.ndim == 2 else value
            yield Leaf(f"{path}[{place}]#dtype", repr(column.dtype))
            is_plain = isinstance(column.dtype, np.dtype) or type(column.dtype).__name__ == "StringDtype"
            yield from self.parts(column.to_numpy() if is_plain else column.array, f"{path}[{place}]")

    def _named(self, value: Any, path: str) -> Iterator[Leaf]:
        """A class, a function or a module, which has a name; and what a function keeps."""
        yield Leaf(
            path, f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', getattr(value, '__name__', ''))}"
        )
        if isinstance(value, types.MethodType):
            yield from self.parts(value.__self__, f"{path}.__self__")
        if isinstance(value, type) and not is_importable(value):
            for name, item in vars(value).items():
                if isinstance(item, types.FunctionType) or not (name.startswith("__") or isinstance(item, _DESCRIPTORS)):
                    yield from self.parts(item, f"{path}.{name}")
        if isinstance(value, types.FunctionType):
            kept = {f"default {place}": item for place, item in enumerate(value.__defaults__ or ())} | (
                value.__kwdefaults__ or {}
            )
            if not is_importable(value):
                kept["constants"] = [one for one in value.__code__.co_consts if not isinstance(one, types.CodeType)]
            names = value.__code__.co_freevars
            for name, cell in zip(names, value.__closure__ or (), strict=True):
                try:
                    kept[name] = cell.cell_contents
                except ValueError:  # it is empty
                    kept[name] = None
            for name, item in (kept | vars(value)).items():
                yield from self.parts(item, f"{path}.{name}")

    def _object(self, value: Any, path: str) -> Iterator[Leaf]:
        """Any other object: its attributes, the state that a copy of it would have, and a class that was made for it."""
        yield Leaf(f"{path}#type", name_of(type(value)))
        if not is_importable(type(value)):
            yield from self.parts(type(value), f"{path}#class")
        if name_of(type(value)) in _BOOKKEEPING:
            return
        kept = attributes(value)
        yield from self._kept(kept, path)
        try:
            reduced = value.__reduce_ex__(4)
        except Exception:  # it has a state that nobody can copy
            yield Leaf(path, f"{name_of(type(value))}, which cannot be copied", is_read=False)
            return
        if isinstance(reduced, str):
            yield Leaf(f"{path}#name", reduced)
            return
        made, given, state, items, pairs = (*reduced, None, None, None)[:5]
        if getattr(made, "__name__", "") in ("__newobj__", "_reconstructor"):
            given = () if isinstance(value, _CONTENTS) else given[1:]  # the class is named already, as are contents
        if isinstance(state, dict):  # attributes are read already
            state = {name: part for name, part in state.items() if kept.get(name, kept) is not part}
        parts = {"made": given or None, "state": None if _is_default(value) else state or None}
        if not isinstance(value, list):
            parts["items"] = None if items is None else list(items)
        if not isinstance(value, dict):
            parts["pairs"] = None if pairs is None else dict(pairs)
        for name, part in parts.items():
            if part is not None:
                yield from self.parts(part, f"{path}#{name}")

    def _kept(self, kept: dict[str, Any], path: str) -> Iterator[Leaf]:
        if kept:
            yield Leaf(f"{path}#attributes", " ".join(kept))
        for name, item in kept.items():
            yield from self.parts(item, f"{path}.{name}")


def attributes(value: object) -> dict[str, Any]:
    """Values that an object keeps: in its dictionary, in slots and, of an exception, its arguments."""
    kept = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            hidden = f"_{kind.__name__.lstrip('_')}{name}" if name.startswith("__") and not name.endswith("__") else name
            if hidden not in ("__dict__", "__weakref__") and hasattr(value, hidden):
                kept[name] = getattr(value, hidden)
    return kept | {"args": value.args} if isinstance(value, BaseException) else kept


def _is_default(value: object) -> bool:
    """True if the state of an object is what its attributes hold."""
    kind: Any = type(value)
    return all(getattr(kind, name) is getattr(object, name) for name in ("__reduce_ex__", "__reduce__", "__getstate__"))


def _numbers(items: list[Any]) -> Leaf | None:
    """Plain numbers of one type as one leaf; None where they are none, or too large."""
    kind = type(items[0]) if len(items) > 1 else None
    if kind not in (float, int) or set(map(type, items)) != {kind}:
        return None
    if kind is int and max(map(abs, items)) > _EXACT:
        return None
    return Leaf("", kind.__name__, as_floats(np.array(items)))


def name_of(kind: type) -> str:
    """Module and name of a class."""
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _one(value: float) -> FloatArray:
    return np.array([_NEGATIVE_ZERO if value == 0 and math.copysign(1, value) < 0 else value])


def _whole(value: int) -> FloatArray:
    """A whole number of any size: as a float and, beyond 2^53, in parts of 52 bits, the lowest first."""
    if abs(value) <= _EXACT:
        return np.array([float(value)])
    size, parts = abs(value), []
    while size:
        parts.append(float(size & (2**52 - 1)))
        size >>= 52
    return np.array([np.inf if value > 0 else -np.inf, *parts])


def _text(text: str, path: str, kind: str) -> Iterator[Leaf]:
    """A text as a label, its bytes with their number, the numbers that it mentions, and the text around them."""
    encoded = np.frombuffer(text.encode("utf-8", "surrogatepass") if kind == "str" else text.encode("latin-1"), np.uint8)
    yield Leaf(path, f"{kind} {text!r}", np.concatenate([[float(len(encoded))], encoded]))
    numbers = _NUMBER.findall(text)
    if numbers:
        yield Leaf(f"{path}#around", _NUMBER.sub("0", text), np.array(numbers, dtype=float))


def is_importable(named: type | types.FunctionType) -> bool:
    """True if a class or a function stands under its name in its module; what is made in a call may hold what that knew."""
    place: object = sys.modules.get(named.__module__)
    for part in named.__qualname__.split("."):
        place = getattr(place, part, None)
    return place is named


def _is_plain_table(value: object) -> bool:
    """True of pandas' own types, where nothing was added: tables, columns, and the index that most of them have."""
    kind = type(value)
    is_pandas = kind.__module__.partition(".")[0] == "pandas" and kind.__name__ in _TABLES
    return is_pandas and set(vars(value)) <= _KEPT_BY_PANDAS


def _tensor(value: Any) -> Any:
    """A tensor of torch as an array of NumPy; None of anything else."""
    if not type(value).__module__.startswith("torch") or not all(hasattr(value, name) for name in ("detach", "device")):
        return None
    detached = value.detach().cpu()
    try:
        return detached.numpy()
    except TypeError:  # NumPy lacks some of torch's types
        return detached.float().numpy()
