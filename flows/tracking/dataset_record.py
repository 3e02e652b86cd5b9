"""Record for MLflow of the data that a cell was played on: of a private table only what its owner declared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bandana.flows.keys.content import content_key
from bandana.flows.plan.cells import Cell
from bandana.flows.plan.keys import identity_of


def dataset_record(cell: Cell) -> dict[str, Any]:
    """Name, digest, source, columns and profile, as `CellRecord.dataset` takes them.

    The digest of public data changes with any value in them. That of a private table is made of the declared facts: with
    one of its content, whoever knows all rows but one could find out the last.
    """
    environment, spec = cell.environment, cell.spec
    interval = environment.reward_range
    declared = {
        "rounds": spec.horizon,
        "arms": environment.n_actions,
        "lowest reward": interval.low,
        "highest reward": interval.high,
    }
    item = environment.item
    if item.data_file is not None:  # where it lies says who keeps it, and changes with the machine
        item = item.with_file(Path(item.data_file.name))
    left_out = {"data", "not_the_data_of"} | ({"rows"} if getattr(item, "rows", None) is None else set())
    source = item.model_dump_json(exclude=left_out)
    identity = identity_of(cell)["environment"] if environment.shows("values") else {**declared, "source": source}
    profile = {**declared, "means": environment.describe()["means"]} if environment.shows("means") else declared
    return {
        "name": environment.label,
        "digest": content_key(identity)[:12],
        "source": source,
        "columns": list(environment.names),
        "profile": profile,
    }
