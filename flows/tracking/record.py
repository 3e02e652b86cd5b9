"""Record that MLflow keeps of one cell, as plain data that is checked before anything is written."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from bandana.audits.documents.audit import ROLES, Audit, AuditEntry
from bandana.flows.texts.json_text import JsonObject

Curve = tuple[Sequence[int], Sequence[float]]
"""Rounds and values."""
NAME_LENGTH = 250
_RUN_KEY = re.compile(r"[A-Za-z0-9._:-]{1,200}")
_KEY_NAME = re.compile(r"[A-Za-z0-9_./ :-]{1,250}")


@dataclass(frozen=True)
class CellRecord:
    """Record that MLflow keeps of one cell: one algorithm with one set of parameters on one environment.

    Attributes:
      run_key: content hash of the cell; equal keys share one run.
      name: what people read, for example 'adar-ucb tight eps=1'. A new run supersedes those of its suite with this name.
      params: public parameters; `epsilon` is a number, or absent where the run is not private.
      tags: further labels.
      metrics: final scalars, for example 'regret/final'; values that are not finite are left out.
      curves: name -> (rounds, values), 150 to 250 log-spaced rounds; the page shows at most 320.
      artifacts: files or folders to keep with the run.
      dataset: the data played on, or None: `name`, `digest`, `source` (text); where it helps also `context` (of its use,
        'benchmark' unless said), `columns` (names) and `profile` (facts about the table that may be known).
      note: Markdown at the head of the run's page.
      provenance: how the numbers came to be, as further tags: as stored with the results, whatever a run already says.
      fills: names of metrics that are written where nothing stands yet, and otherwise give way to what does.
    """

    run_key: str
    name: str
    params: Mapping[str, str | float | int] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    curves: Mapping[str, Curve] = field(default_factory=dict)
    artifacts: list[Path] = field(default_factory=list)
    dataset: JsonObject | None = None
    note: str = ""
    provenance: Mapping[str, str] = field(default_factory=dict)
    fills: Collection[str] = ()

    def __post_init__(self) -> None:
        if not _RUN_KEY.fullmatch(self.run_key):
            raise ValueError(f"run_key holds at most 200 letters, digits and . _ : -, got {self.run_key!r}")
        for name in (*self.params, *self.metrics, *self.curves):
            if not _KEY_NAME.fullmatch(name):
                raise ValueError(f"a name holds at most {NAME_LENGTH} letters, digits, spaces and _ - . : /, got {name!r}")
        if both := set(self.metrics) & set(self.curves):
            raise ValueError(f"{sorted(both)} are both metrics and curves; give each under one name")
        for name, (rounds, values) in self.curves.items():
            if len(rounds) != len(values):
                raise ValueError(f"curve {name!r}: {len(rounds)} rounds, {len(values)} values; they pair up")
        names = [path.name for path in self.artifacts]
        if len(set(names)) < len(names):
            raise ValueError(f"artifacts need different file names, got {sorted(names)}")

    @property
    def digest(self) -> str:
        """Short hash of all that is to be written: a run that names it holds it, and need not be read to know."""
        curves = {name: (list(rounds), list(values)) for name, (rounds, values) in self.curves.items()}
        names = [path.name for path in self.artifacts]
        content = (self.name, dict(self.params), self.tags, self.metrics, curves, names, self.dataset, self.note)
        return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()[:16]

    def made_of(self, tags: Mapping[str, str]) -> dict[str, str]:
        """Those of a run's tags that say how the record's numbers came to be."""
        kinds = tuple({f"{key.rpartition('.')[0]}." for key in self.provenance})
        return {key: value for key, value in tags.items() if key.startswith(kinds)}


def computing_time(tags: Mapping[str, str]) -> tuple[int, int] | None:
    """When a run's first number was begun, in milliseconds since 1970, and for how many milliseconds its numbers were made.

    Computed from the tags `made.*`, where benchmark and audit follow one another: their times add up. None without them.
    """
    kinds = [key.removesuffix(".seconds") for key in tags if re.fullmatch(r"made\.\w+\.seconds", key)]
    began = [datetime.fromisoformat(tags[f"{kind}.began"]) for kind in kinds if f"{kind}.began" in tags]
    if not began:
        return None
    length = math.fsum(float(tags[f"{kind}.seconds"]) for kind in kinds)
    return round(min(began).timestamp() * 1000), round(length * 1000)


def is_loggable(value: object) -> bool:
    """True if a parameter says anything."""
    return value is not None and not (isinstance(value, float) and not math.isfinite(value))


ACCOUNTED = ("privacy/mu_accounted", "privacy/epsilon_accounted")
"""Accounted privacy after the benchmark's rounds; without a benchmark, after the audit's."""


def audit_metrics(entry: AuditEntry | Audit) -> dict[str, float]:
    """Metrics that MLflow keeps of an audit, of its entry in the report; without what is infinite.

    What is accounted stands there twice: printed noise costs another mu in the audit's rounds than in the benchmark's.
    """
    controls, three = entry["controls"], {"mu": entry["mu"], "epsilon": entry["epsilon"]}
    metrics = {
        **{f"audit/{name}_{role}": three[name][role] for name in three for role in ROLES[1:]},
        "audit/controls_caught": sum(control["caught"] for control in controls),
        "audit/controls_planted": len(controls),
        "audit/smallest_factor": entry["measurement"]["smallest_factor"],
        **{f"privacy/{name}_{role}": three[name][role] for name in three for role in ROLES[:2]},
    }
    return {name: float(value) for name, value in metrics.items() if value is not None}
