"""Outside code that rows play: one file of a public repository at a pinned commit, which you clone yourself.

Nothing of that code lies in this repository: it is read from `build/outside`, and runs only if it is the file that is named
here, byte by byte. Its generator is replaced: noise is what the ledger drew at the scale that the code asks for, and coins
are public. So the code's own noise is what is accounted for and audited, and two runs with one seed are equal.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

PLACE = Path(__file__).resolve().parents[2] / "build" / "outside"
"""Where repositories are cloned to, each in a folder of its name."""


class NoiseRequest(NamedTuple):
    """Noise that the code asked for."""

    scale: float
    """Laplace scale."""
    is_one_number: bool
    """True if one number was asked for, whatever it is added to."""


class Handed:
    """Stands for the generator of outside code.

    Attributes:
      answer: the noise that is handed out next.
      coins: uniform numbers in [0, 1), handed out one by one.
      request: the last noise that was asked for.
    """

    def __init__(self) -> None:
        self.answer: Any = 0.0
        self.coins: Iterator[float] = iter(())
        self.request = NoiseRequest(0.0, is_one_number=True)

    def laplace(self, loc: float = 0.0, scale: float = 1.0, size: object = None) -> Any:
        """The noise at hand; the location must be 0, as it is part of no noise."""
        if loc != 0:
            raise ValueError(f"noise must be centered at 0, got location {loc!r}")
        self.request = NoiseRequest(float(scale), size is None)
        return self.answer

    def uniform(self) -> float:
        """The next coin."""
        return next(self.coins)


class Outside(NamedTuple):
    """One file of a public repository.

    Attributes:
      repository: its address.
      commit: the pinned one.
      file: path in it.
      digest: SHA-256 of the file, in hex digits.
    """

    repository: str
    commit: str
    file: str
    digest: str

    def load(self) -> tuple[ModuleType, Handed]:
        """The file as a module of its own, new at each call, and what stands for its generator.

        Raises:
          FileNotFoundError: it is not there; the message says how to get it.
          ValueError: it is another version.
        """
        module, handed = self.unchanged(), Handed()
        numpy = ModuleType("numpy")
        vars(numpy).update(vars(np) | {"random": handed})
        for name, stand_in in (("np", numpy), ("rng", handed)):
            if hasattr(module, name):
                setattr(module, name, stand_in)
        return module, handed

    def unchanged(self) -> ModuleType:
        """The file as a module that draws as its authors meant it to; errors are those of `load`."""
        clone = PLACE / self.repository.rpartition("/")[2]
        path = clone / self.file
        get = f"git clone {self.repository} {clone} && git -C {clone} checkout {self.commit}"
        if not path.is_file():
            raise FileNotFoundError(f"{path} is not there; get it with: {get}")
        text = path.read_bytes()
        if (actual := sha256(text).hexdigest()) != self.digest:
            raise ValueError(f"{path} must have SHA-256 {self.digest}, got {actual}; get it with: {get}")
        module = ModuleType(f"outside_{path.stem}")
        before = set(sys.modules)
        sys.path.insert(0, str(clone))
        try:
            exec(compile(text, str(path), "exec", dont_inherit=True), module.__dict__)
        finally:
            sys.path.remove(str(clone))
            for name in set(sys.modules) - before:
                if str(getattr(sys.modules[name], "__file__", "")).startswith(str(clone)):
                    del sys.modules[name]
        return module
