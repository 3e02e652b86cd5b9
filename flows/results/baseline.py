"""A suite's baseline: regret and tightness as they were recorded once, to hold later results against.

Recording computes nothing anew: it reads finished blocks and audits from the store. What a spec does not declare public
does not stand in a baseline either, so that the file can be kept under version control.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bandana.audits import evidence
from bandana.audits.outcome import MU, ONE_RUN, Outcome, Scores, StatedBound
from bandana.audits.reporting.intervals import student_quantile
from bandana.flows.cells.audits import stored_audit
from bandana.flows.cells.play import BENCHMARK
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import Store, write_whole
from bandana.flows.keys.checkout import sources
from bandana.flows.keys.content import content_key
from bandana.flows.plan.cells import Cell
from bandana.flows.plan.plan import Plan
from bandana.flows.problems.environment import Environment, EnvironmentFields
from bandana.flows.spec.spec import Spec
from bandana.flows.texts.json_text import read_model
from bandana.flows.texts.mistakes import SpecError, plain, printable, shortened

REGRET = "final regret"
_RESAMPLES = 60


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Estimate(_Strict):
    """One number with its uncertainty."""

    quantity: str = Field(description="`final regret`, or `tightness of` what an audit bounded: measured / claimed.")
    value: float
    standard_error: float = Field(ge=0)
    freedom: int = Field(ge=1, description="Degrees of freedom of the standard error.")
    low: float = Field(description="Lower end of the 95 % interval, Student's.")
    high: float

    @classmethod
    def of(cls, quantity: str, value: float, standard_error: float, freedom: int) -> Estimate:
        """An estimate with its 95 % interval."""
        half = student_quantile(freedom) * standard_error
        return cls(quantity=quantity, value=value, standard_error=standard_error, freedom=freedom,
                   low=value - half, high=value + half)  # fmt: skip


class Regret(_Strict):
    """Final regret of a cell."""

    setting: str = Field(description="Hash of what the number depends on, but for code and seed.")
    replications: int
    final: Estimate


class Audited(_Strict):
    """An audit: its verdict, and how close the certified lower bounds come to the claim."""

    setting: str
    verdict: Literal["PASS", "NOT REFUTED", "INCONCLUSIVE", "FAIL"]
    tightness: list[Estimate]


class CellFacts(_Strict):
    """Recorded results of one cell; None for what was not run, or may not be shown."""

    label: str
    regret: Regret | None
    audit: Audited | None


class Baseline(_Strict):
    """Recorded results that later ones are compared with."""

    schema_: Literal["bandana/baseline/1"] = Field("bandana/baseline/1", alias="schema")
    suite: str
    code: str = Field(description="SHA-256 of the sources that the numbers depend on.")
    spec: str = Field(description="Text of the spec.")
    cells: list[CellFacts]

    def to_json(self) -> str:
        """The file's content; equal baselines have equal texts."""
        return self.model_dump_json(by_alias=True, indent=1) + "\n"


def place_of(spec: Spec, folder: DataFolder) -> Path:
    """Where the spec's baseline lies, or will: where the spec says, else with the suite."""
    return spec.baseline or place_in(folder, spec.name)


def place_in(folder: DataFolder, suite: str) -> Path:
    """Where a suite's baseline lies that has no place of its own."""
    return folder.suite(suite) / "baseline.json"


def read(path: Path) -> Baseline | None:
    """The baseline; None where none was recorded.

    Raises:
      SpecError: the file is not a baseline.
    """
    try:
        return read_model(Baseline, path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SpecError(f"baseline: {path} cannot be read: {error}") from error
    except ValidationError as error:
        item = error.errors()[0]
        where = shortened(printable(".".join(map(str, item["loc"])))) or "the file"
        raise SpecError(f"baseline: {path} is not a baseline: {where}: {plain(item)}; record it anew") from error
    except ValueError as error:
        raise SpecError(f"baseline: {path} is not a baseline: {error}; record it anew") from error


def write(path: Path, baseline: Baseline) -> None:
    """Writes the baseline, whole or not at all."""
    write_whole(path, baseline.to_json().encode())


def record(plan: Plan, text: str, store: Store) -> Baseline:
    """The present results of a plan, from the store: no cell of which it holds nothing that may be shown."""
    cells = []
    for cell in plan.cells:
        outcome = stored_audit(cell, store)
        setting = {**_setting(cell), "audit": cell.audit.model_dump(mode="json"), "seed": cell.spec.seed}
        audit = None if outcome is None else audited(outcome, content_key(setting))
        regret = _regret_of(cell, store) if cell.environment.shows("regret") else None
        if regret is not None or audit is not None:
            cells.append(CellFacts(label=cell.name, regret=regret, audit=audit))
    return Baseline(suite=plan.spec.name, code=sources(), spec=text, cells=cells)


def record_audits(suite: str, outcomes: Mapping[str, Outcome]) -> Baseline:
    """The outcomes of audits that belong to no spec, by label."""
    cells = [
        CellFacts(label=label, regret=None, audit=audited(outcome, content_key({"effort": asdict(outcome.effort)})))
        for label, outcome in outcomes.items()
    ]
    return Baseline(suite=suite, code=sources(), spec="", cells=cells)


def _setting(cell: Cell) -> dict[str, object]:
    """Settings that a cell's numbers depend on, but for code and seeds; of private rows not even a hash."""
    about = cell.environment.facts()
    is_private = about.pop("content", None) is not None
    if (rows := about.pop("path", None)) is not None and not is_private:
        about["rows"] = rows
    return {
        "algorithm": cell.entry.seed_name,
        "calibration": cell.settings.calibration,
        "parameters": cell.entry.seed_parameters(cell.settings),
        "environment": about,
    }


def _regret_of(cell: Cell, store: Store) -> Regret | None:
    """Final regret of a cell; None where a block is missing, or where one replication says nothing about the spread."""
    finals = []
    for block in cell.blocks():
        if (stored := store.load(BENCHMARK, block.key)) is None:
            return None
        finals.append(stored[0]["regret"][:, -1])
    return regret(np.concatenate(finals), content_key({**_setting(cell), "horizon": cell.spec.horizon}))


def regret(finals: np.ndarray, setting: str) -> Regret | None:
    """The mean of (n,) final regrets and its uncertainty, with the hash of what they depend on; None for fewer than two."""
    n = len(finals)
    if n < 2:
        return None
    final = Estimate.of(REGRET, float(finals.mean()), float(finals.std(ddof=1) / math.sqrt(n)), n - 1)
    return Regret(setting=setting, replications=n, final=final)


def audited(outcome: Outcome, setting: str) -> Audited:
    """Record of an audit in a baseline: the verdict, and the tightness of the claim's main quantity and of mu."""
    tightness = []
    for quantity in dict.fromkeys((outcome.main, MU)):
        three = outcome.numbers.get(quantity)
        if three is None or not 0 < three.claimed < math.inf or not math.isfinite(three.measured):
            continue
        bound = max((b for b in outcome.bounds if b.quantity == quantity), key=lambda b: b.lower)
        error = standard_error(bound, outcome.scores, outcome.effort.seed) / three.claimed
        tightness.append(Estimate.of(f"tightness of {quantity}", three.measured / three.claimed, error, _RESAMPLES - 1))
    return Audited(setting=setting, verdict=outcome.verdict.value, tightness=tightness)


def standard_error(bound: StatedBound, scores: Scores, seed: int) -> float:
    """Standard deviation of a certified lower bound from one set of replays to the next, by the bootstrap.

    Scores are drawn anew, with replacement, and the same bound is taken from them; its standard deviation is returned. The
    distance from the bound to the same method's estimate at level 1/2 is no such measure: methods choose thresholds by the
    level, and the two can stand in either order.

    The same arguments give the same number; `seed` is that of the resampling.
    """
    generator = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(_RESAMPLES,))))
    data, neighbor = scores[bound.scores]
    bounds = []
    for _ in range(_RESAMPLES):
        first = generator.integers(len(data), size=len(data))
        # In one run a score and its coin belong together; replays of two data sets do not.
        second = first if bound.view == ONE_RUN else generator.integers(len(neighbor), size=len(neighbor))
        bounds.append(evidence.recompute(bound, (data[first], neighbor[second])))
    return float(np.std(bounds, ddof=1))


def withheld(plan: Plan) -> list[Environment[EnvironmentFields]]:
    """The environments of a plan whose regret may not be shown, and is therefore in no baseline."""
    return [environment for environment in plan.environments if not environment.shows("regret")]
