"""The command itself: finds out what is to be audited, and refuses options that have no meaning for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bandana.flows.annex import plugged
from bandana.flows.commands.audit import catalog
from bandana.flows.commands.audit.options import Limits, Neighbors, Promise, Running, Search, Subject, as_typed, given
from bandana.flows.commands.failures import failures
from bandana.flows.commands.groups import grouped
from bandana.flows.commands.suites import read, resources_of, run_spec


@grouped
def audit(subject: Subject, neighbors: Neighbors, promise: Promise, search: Search, limits: Limits, how: Running) -> None:
    """Audit a spec's private algorithms, the whole catalog, your own algorithm, any release, or samples of one."""
    with failures(how.debug):
        from bandana.flows.texts.mistakes import SpecError

        options = given(promise, search) | given(neighbors)
        kinds = (subject.spec, subject.algorithm, subject.mechanism, subject.samples, subject.all_ or None)
        if sum(kind is not None for kind in kinds) != 1:
            raise SpecError(
                "audit one of: a SPEC, the whole catalog with --all, your own with --algorithm FILE.py:NAME, any release "
                "with --mechanism FILE.py:NAME, or its outputs with --samples P.npy Q.npy"
            )
        if subject.mechanism is not None or subject.samples is not None:
            _by_annex("release", subject, options, limits, how)
            return
        if subject.neighbor is not None:
            raise SpecError("--neighbor: only with --mechanism")
        if subject.only and not subject.all_:
            raise SpecError("--only: only with --all")
        resources = resources_of(how.executor, how.workers)
        if how.dry_run and subject.spec is None:
            raise SpecError("--dry-run: only with a SPEC")
        if subject.all_:
            catalog.audit(subject.only or [], options, resources, how)
        elif subject.spec is not None:
            if options:
                raise SpecError(f"{as_typed(options)}: only with --algorithm; a spec has its own field `audit`")
            data, steps = None if how.data is None else Path(how.data), ["audit", "report"]
            spec = read(subject.spec)
            run_spec(spec, data, steps, resources, dry_run=how.dry_run, is_agreed=how.yes, as_json=how.as_json)
        else:
            _by_annex("algorithm", subject, options, limits, how)


def _by_annex(kind: str, subject: Subject, options: dict[str, Any], limits: Limits, how: Running) -> None:
    """Audits what is neither a spec nor the catalog, as the annex does that plugs in the kind.

    Raises:
      SpecError: no annex does.
    """
    from bandana.flows.texts.mistakes import SpecError

    audits = plugged("audits")
    if kind not in audits:
        raise SpecError("--algorithm, --mechanism, --samples: the annex `anything`, which audits these, is not installed")
    audits[kind](subject, options, limits, how)
