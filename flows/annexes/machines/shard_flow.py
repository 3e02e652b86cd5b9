"""One shard of a suite as a flow run, for Prefect's work pools: processes, containers or pods that share an object store."""

from __future__ import annotations

from pathlib import Path

from prefect import flow
from prefect.runtime import flow_run

from bandana.flows.annexes.machines.sharing import Shard, work
from bandana.flows.folder.settings import DataFolder, data_root, n_workers
from bandana.flows.plan.plan import Plan
from bandana.flows.spec.spec import Spec, load_spec, parse_spec


def _read(spec: str) -> Spec:
    return parse_spec(spec, "spec", Path.cwd()) if "\n" in spec else load_spec(Path(spec))


def _run_name() -> str:
    """Name of a flow run: the suite and the shard."""
    given = flow_run.parameters
    return f"{_read(given['spec']).name}: shard {given.get('shard', '1/1')}"


@flow(name="shard", flow_run_name=_run_name, persist_result=False)
def shard_flow(
    spec: str, data: str | None = None, shard: str = "1/1", audit: bool = False, workers: int | None = None
) -> dict[str, dict[str, int]]:
    """Computes what is missing of a suite, as `bandana work` does, beginning with one shard.

    A run that was killed needs no other in its place: those that live do its work, or `bandana run` does at the end.

    Args:
      spec: path of a spec, or its text, which reaches workers without a disk in common.
      data: store that all runs share, such as `s3://bucket/prefix`, or a folder; None for BANDANA_DATA.
      shard: part to begin with, such as `2/4`.
      audit: whether private cells are audited too.
      workers: processes of this run; None: one a core.

    Returns:
      `blocks` and `audits`, each with what was computed `here` and the `total` in the store.
    """
    plan, part = Plan.of(_read(spec), data_root(data)), Shard.parse(shard)
    folder = DataFolder.open(data)
    done = work(plan.bound(folder.root), folder, part, workers or n_workers(), is_audited=audit)
    return {kind: shared._asdict() for kind, shared in done.items()}
