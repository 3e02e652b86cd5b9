"""Which probes a test reaches: this file is copied into an instrumented checkout, whose modules import it.

A probe is a number before a statement. What is read from a cache or from a shared fixture was computed for an earlier test;
the probes of that computation count for every test that reads it. Processes that a test starts write down what they reach.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = os.environ.get("BANDANA_PROBES_ROOT", "")
FILE = os.environ.get("BANDANA_PROBES_FILE", "")
LABEL = "BANDANA_PROBES_TEST"

seen: set[int] = set()
"""Reached since the current test began; instrumented code looks here first."""
main_process: int | None = None
"""Where `seen` itself is read; other processes write to FILE."""


def reached(probe: int) -> None:
    """Notes a probe."""
    seen.add(probe)
    if FILE and os.getpid() != main_process:
        with open(FILE, "a", encoding="utf-8") as out:
            out.write(f"{os.environ.get(LABEL, '')}\t{probe}\n")


@contextmanager
def apart() -> Iterator[set[int]]:
    """Collects what is reached inside, which counts outside too."""
    before = set(seen)
    seen.clear()
    inner: set[int] = set()
    try:
        yield inner
    finally:
        inner |= seen
        seen.update(before)


def _is_ours(function: Any) -> bool:
    code = getattr(function, "__code__", None)
    return code is not None and bool(ROOT) and Path(code.co_filename).is_relative_to(ROOT)


def _remembering(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A decorator that caches as `make` does, and remembers what computing a value reached."""

    def decorate(function: Any) -> Any:
        if not _is_ours(function):
            return make(function)
        known: dict[Any, set[int]] = {}

        def key(given: tuple[Any, ...], named: dict[str, Any]) -> Any:
            return given, tuple(sorted(named.items()))

        @functools.wraps(function)
        def compute(*given: Any, **named: Any) -> Any:
            with apart() as inner:
                known[key(given, named)] = inner
                return function(*given, **named)

        cached = make(compute)

        @functools.wraps(function)
        def look_up(*given: Any, **named: Any) -> Any:
            value = cached(*given, **named)
            seen.update(known.get(key(given, named), ()))
            return value

        for name in ("cache_info", "cache_clear", "cache_parameters"):
            setattr(look_up, name, getattr(cached, name))
        return look_up

    return decorate


_lru_cache, _cached_property = functools.lru_cache, functools.cached_property


def lru_cache(maxsize: Any = 128, typed: bool = False) -> Any:
    """`functools.lru_cache` that remembers."""
    if callable(maxsize):
        return _remembering(_lru_cache(128))(maxsize)
    return _remembering(_lru_cache(maxsize, typed))


def cache(function: Any) -> Any:
    """`functools.cache` that remembers."""
    return _remembering(_lru_cache(None))(function)


class _AnyCachedProperty(type):
    """What libraries ask of `functools.cached_property` holds for theirs, which stay as they are, too."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _cached_property)


class CachedProperty(_cached_property, metaclass=_AnyCachedProperty):  # type: ignore[misc, valid-type]
    """`functools.cached_property` that remembers, for each object that computed its value; of our functions alone."""

    def __new__(cls, function: Any) -> Any:
        return super().__new__(cls) if _is_ours(function) else _cached_property(function)

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._known: dict[int, set[int]] = {}

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return super().__get__(instance, owner)
        if self.attrname in instance.__dict__:
            seen.update(self._known.get(id(instance), ()))
            return instance.__dict__[self.attrname]
        with apart() as inner:
            self._known[id(instance)] = inner
            value = instance.__dict__[self.attrname] = self.func(instance)
        return value

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__[self.attrname] = value


def install() -> None:
    """From here on caches remember; before any module of the checkout is imported."""
    functools.lru_cache = lru_cache
    functools.cache = cache
    functools.cached_property = CachedProperty  # type: ignore[assignment, misc]


if ROOT:
    install()
