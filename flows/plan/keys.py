"""Content keys and seeds of cells and blocks, from all that their results depend on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bandana.algorithms.entry import AS_KNOWN, PRINTED
from bandana.flows.keys import identity
from bandana.flows.keys.content import content_key
from bandana.flows.keys.identity import MadeBy
from bandana.flows.plan import made_by
from bandana.flows.plan.seeds import NOISE, seed_of

if TYPE_CHECKING:
    from bandana.flows.plan.cells import Block, Cell
    from bandana.flows.problems.environment import Environment, EnvironmentFields


def identity_of(cell: Cell) -> dict[str, object]:
    """Everything that a cell's algorithm and data depend on, named so that new words for it change no seed."""
    noise = {} if cell.noise == "reproducible" else {"noise": cell.noise}
    return {
        "algorithm": cell.entry.seed_name,
        "privacy_model": cell.entry.privacy_model,
        "calibration": cell.settings.calibration and cell.settings.calibration.replace(AS_KNOWN, PRINTED),  # its first name
        "parameters": cell.entry.seed_parameters(cell.settings),
        "environment": cell.environment.facts(),
        "seed": cell.spec.seed,
        **noise,
    }


def stated(cell: Cell) -> dict[str, object]:
    """The claim of a user's own algorithm, for keys of audits: of the catalog's, it follows from settings and code.

    And whether it is made to a user: with the same noise, it is another claim.
    """
    own: dict[str, object] = {"claim": cell.entry.stated, "named": cell.entry.label} if cell.entry.stated else {}
    return own if cell.promised is None else {**own, "level": "user", "promised": str(cell.promised)}


def block_code(cell: Cell) -> MadeBy:
    """Code that computes the cell's blocks in this process, see `identity.made_by`; a worker finds out its own."""
    return identity.made_by(made_by.block_roots(cell))


def audit_code(cell: Cell) -> MadeBy:
    """Code that computes the cell's audit in this process. Only for private cells."""
    return identity.made_by(made_by.audit_roots(cell))


def block_facts(block: Block) -> dict[str, object]:
    """Everything that was asked for."""
    horizon = block.cell.spec.horizon
    return {**identity_of(block.cell), "horizon": horizon, "block": block.index, "n_reps": block.n_reps}


def noise_seed(block: Block) -> np.random.SeedSequence:
    """Seed of a block's privacy noise, where it is reproducible."""
    environment = block.cell.environment
    facts = identity_of(block.cell) | {"environment": _drawn_from(environment)} | environment.noise_facts()
    return seed_of(block.cell.spec.seed, NOISE, content_key(facts), block.index)


def shared_seed(block: Block, purpose: int) -> np.random.SeedSequence:
    """A seed for each purpose and block, the same in all cells on an environment.

    They play on common random numbers, so that a comparison of two cells is free of what was drawn for both.
    """
    root = block.cell.spec.seed
    facts = {"environment": _drawn_from(block.cell.environment), "seed": root}
    return seed_of(root, purpose, content_key(facts), block.index)


def _drawn_from(environment: Environment[EnvironmentFields]) -> dict[str, object]:
    """Facts that seeds may depend on: no content of a private file, and not whose a record is, which changes no number.

    The content is known by an HMAC with the data folder's secret, and the same file must give the same numbers everywhere.
    """
    return {name: fact for name, fact in environment.facts().items() if name not in ("content", "visits")}
