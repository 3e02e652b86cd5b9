"""Work of more than a day is started only by those who mean it: one question for every command that starts work."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from bandana.flows.plan.plan import Plan
    from bandana.flows.running.executors import Resources

_MOST_MEASURED = 100
"""Calibrations that short trials measure, some seconds each."""


class Work(NamedTuple):
    """Steps on a spec that a command is about to start."""

    plan: Plan
    steps: Sequence[str]


def ask(
    source: str,
    work: Sequence[Work],
    data: Path | None,
    resources: Resources | None,
    *,
    is_agreed: bool,
    audit_seconds: float = 0.0,
) -> None:
    """Refuses work that is estimated to take more than a day, unless `--yes` agreed to it.

    Args:
      source: what the work is called in the message.
      work: all that is about to start.
      data: the data folder, for what is done already; None or missing: nothing is.
      resources: what the user chose.
      is_agreed: whether `--yes` was given.
      audit_seconds: of audits that belong to no spec, on one core.

    Raises:
      SpecError: it would take longer.
    """
    if is_agreed:
        return
    from bandana.flows.folder.progress import duration
    from bandana.flows.folder.settings import n_workers
    from bandana.flows.queries.cost import DAY, may_take_days
    from bandana.flows.queries.explain import explain
    from bandana.flows.texts.mistakes import SpecError

    shared = (resources.workers if resources is not None else None) or n_workers()
    seconds, about = audit_seconds / shared, "about"
    if may_take_days(((plan.cells, steps) for plan, steps in work), shared):
        most = max(1, _MOST_MEASURED // len(work))
        for place, (plan, steps) in enumerate(work, start=1):
            seconds += explain(plan, steps, data, shared, most)["seconds"]
            if seconds > DAY and place < len(work):
                about = "at least"
                break
    if seconds > DAY:
        how = "by short trials" if work else "by the number of replays"
        raise SpecError(
            f"{source}: {about} {duration(seconds)} of work on {shared} workers, {how}: start it with --yes if that is "
            "meant, or make horizon, replications or replays smaller"
        )
