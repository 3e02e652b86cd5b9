"""What every calibration of the catalog plays, releases and spends in a short run: `tests/data/pinned_runs.json`.

    python -m tests.pinned_runs      # writes the file anew: first say in CHANGELOG.md whose numbers changed, and why

Widths, scales and choices that no claim rests on are seen by no other test where both writings of an algorithm share them.
Who repeats a run of an earlier version must get its numbers.
"""

import json
import math
from collections.abc import Iterator
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

import numpy as np

from bandana.algorithms.catalog import CATALOG
from bandana.algorithms.entry import Entry
from bandana.algorithms.problem import EPISODIC
from bandana.flows.plan.cells import Cell
from bandana.flows.plan.plan import cells_of
from bandana.flows.spec.spec import load_spec
from bandana.privacy_core import SecureNoise
from tests.processor_results import play

PLACE = Path(__file__).parent / "data" / "pinned_runs.json"
SPECS = Path(__file__).parents[1] / "experiments"
REPLICATES, ACTIONS = 3, 3
USERS, EPISODES = 300, 40


def _digest(*parts: object) -> str:
    return sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _rounded(numbers: list[float]) -> list[float]:
    """To twelve digits."""
    return [float(f"{number:.12g}") for number in numbers]


def transcript(entry: Entry, calibration: str | None) -> tuple[str, list[float]]:
    """(digest of actions and of the records that releases read; sizes of releases, and what was spent)."""
    n_users = EPISODES if entry.plays_on[0] in EPISODIC else USERS
    settings, log, ledger = play(entry, calibration, n_users, REPLICATES, ACTIONS)
    read = [
        [release.value.shape, type(release.mechanism.event).__name__, *(part.tolist() for part in release.records)]
        for release in ledger.transcript
    ]
    numbers = [entry.promise(settings).gaussian.mu] if entry.promise else []
    if entry.promise and (curve := ledger.curve()) is not None:
        numbers += [curve.epsilon(delta) for delta in (1e-6, 1e-2)]
    for part in ("value", "output"):
        sizes = [float(np.abs(getattr(release, part)).sum()) for release in ledger.transcript]
        numbers += [math.fsum(sizes), *sizes[:1], *sizes[-1:]]
    secure = SecureNoise()
    numbers += [getattr(secure.cost(release.mechanism.event), "rho", 0.0) for release in ledger.transcript[:2]]
    return _digest([actions.tolist() for actions in log.actions], read), [value for value in numbers if math.isfinite(value)]


@lru_cache(maxsize=1)
def _specs() -> dict[str, list[Cell]]:
    """Name of a spec that ships -> its cells."""
    return {path.stem: list(cells_of(load_spec(path))) for path in sorted(SPECS.glob("*.yaml"))}


def seeds() -> Iterator[tuple[str, str]]:
    """(spec, digest of what its cells' first blocks draw from)."""
    for name, cells in _specs().items():
        blocks = [cell.blocks()[0] for cell in cells]
        drawn = [seed.generate_state(4).tolist() for block in blocks for seed in (block.noise_seed, block.reward_seed)]
        yield f"seeds of {name}", _digest(drawn)


def problems() -> Iterator[tuple[str, list[float]]]:
    """(spec and kind of environment, sizes of what is drawn for it, and of the table that its audits play on)."""
    for spec, cells in _specs().items():
        kinds = {type(cell.environment): cell.environment for cell in cells}
        for kind, environment in kinds.items():
            if kind.__name__ == "_Table":  # somebody's file, which may be secret
                continue
            drawn = [getattr(environment, name, ()) for name in ("means", "values", "theta", "arms")]
            table = environment.audit_table()
            arrays = [np.asarray(part) for part in (*drawn, *vars(table).values())]
            parts = [array.astype(float) for array in arrays if array.dtype.kind in "bif" and array.size]
            yield (
                f"problem of {spec}, {kind.__name__[1:]}",
                [number for part in parts for number in (float(np.abs(part).sum()), float(part.ravel()[-1]))],
            )


def bounds() -> Iterator[tuple[str, list[float]]]:
    """(spec, bounds on regret after 100 and 1000 rounds: from below of all cells, from above of each algorithm's first)."""
    rounds, known = np.array([100, 1000]), set()
    for spec, cells in _specs().items():
        numbers: list[float] = []
        for cell in cells:
            above = cell.regret_bound(rounds) if cell.entry.label not in known else None
            known.add(cell.entry.label)
            for bound in (above, cell.lower_bound(rounds)):
                numbers += [] if bound is None else np.asarray(bound.values, dtype=float).tolist()
        yield f"bounds of {spec}", [math.fsum(numbers), *numbers[:2], *numbers[-2:]]


def played() -> dict[str, list]:
    """Name -> digest, or digest and numbers."""
    pins: dict[str, list] = {name: [drawn] for name, drawn in seeds()}
    pins |= {name: ["", *_rounded(numbers)] for name, numbers in (*problems(), *bounds())}
    for entry in CATALOG:
        for calibration in entry.calibrations or (None,):
            digest, numbers = transcript(entry, calibration)
            pins[f"{entry.label}, {calibration}"] = [digest, *_rounded(numbers)]
    return pins


def main() -> None:
    """Writes what is played now."""
    lines = (f"{json.dumps(name)}: {json.dumps(value)}" for name, value in played().items())
    PLACE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
