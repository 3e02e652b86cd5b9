"""Small algorithms of one's own: the example, and bandits on other sums and with other mistakes."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bandana.privacy_core import Interval

ROOT = Path(__file__).parents[1]
UNIT = Interval(0.0, 1.0)


def example(name: str) -> Any:
    """A module of `examples/`."""
    path = ROOT / "examples" / f"{name}.py"
    sys.path.insert(0, str(path.parent))
    try:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module


class Sensitive(NamedTuple):
    sums: Any


class Released(NamedTuple):
    last: np.ndarray
    clock: np.ndarray


@dataclass(frozen=True)
class EveryRound:
    """Releases the running sum after every round, and plays arm 1 while it lies above half of the rounds."""

    sums: Any
    n_actions: int = 2
    reward_range: Interval = UNIT

    def init(self, n_reps):
        return Sensitive(self.sums.init(n_reps)), Released(np.zeros(n_reps), np.zeros(n_reps, dtype=np.int64))

    def act(self, released, context, step):
        return (released.last > released.clock / 2).astype(np.int64)

    def hold(self, released, actions):
        return np.ones(len(actions), dtype=np.int64)

    def absorb(self, sensitive, released, record, ledger):
        sums = self.sums.add(sensitive.sums, record.rewards[:, 0], record.n_records)
        sums, noisy, _ = self.sums.close(sums, ledger)
        return Sensitive(sums), Released(noisy, released.clock + record.n_records)
