"""The command work."""

from __future__ import annotations

import json
import secrets
from typing import Annotated

import typer

from bandana.flows.commands.failures import failures
from bandana.flows.commands.options import Anonymous, AsJson, Data, Debug, SpecPath, Workers, open_data
from bandana.flows.folder.settings import data_root, n_workers

ShardText = Annotated[
    str | None,
    typer.Option("--shard", help="Part to begin with, such as 2/4; all workers then help each other.", show_default=False),
]


def work(
    spec: SpecPath,
    shard: ShardText = None,
    audit: Annotated[bool, typer.Option("--audit", help="Audit it too.")] = False,
    workers: Workers = None,
    anonymous: Anonymous = False,
    as_json: AsJson = False,
    data: Data = None,
    debug: Debug = False,
) -> None:
    """Compute what is missing of a spec, beside other machines on the same store; `bandana run` then reports it."""
    with failures(debug):
        from bandana.flows.annexes.machines.sharing import Shard
        from bandana.flows.annexes.machines.sharing import work as share
        from bandana.flows.plan.plan import Plan
        from bandana.flows.spec.spec import load_spec

        part = Shard(secrets.randbelow(_PARTS) + 1, _PARTS) if shard is None else Shard.parse(shard)
        plan = Plan.of(load_spec(spec), data_root(data))
        folder = open_data(data)
        done = share(plan.bound(folder.root), folder, part, workers or n_workers(), is_audited=audit)
        if as_json:
            typer.echo(json.dumps({kind: shared._asdict() for kind, shared in done.items()}))
            return
        for kind, shared in done.items():
            typer.echo(f"{kind}: {shared.here} computed here, all {shared.total} are in the store")


_PARTS = 1024
"""Parts that work is divided into where nobody said how many workers there are: each begins with one of them at random."""
