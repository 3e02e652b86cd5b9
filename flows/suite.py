"""The suite flow: benchmark, audits and report of one spec, one after the other."""

from __future__ import annotations

from typing import Any

from prefect import flow

from flows.audit import audit
from flows.benchmark import benchmark
from flows.report import report
from flows.specs import Spec


@flow(name="suite")
def suite(spec: Spec, spec_text: str, data: str, steps: list[str]) -> dict[str, Any]:
    """Runs the named steps of one spec.

    Args:
      spec: the experiment.
      spec_text: its text, shown in the report.
      data: the data folder.
      steps: any of benchmark, audit, report, in the order to run them.

    Returns:
      `audits`, the outcomes; `files`, the report's files.
    """
    done: dict[str, Any] = {"audits": [], "files": {}}
    for step in steps:
        if step == "benchmark":
            benchmark(spec, data)
        elif step == "audit":
            done["audits"] = audit(spec, data)
        elif step == "report":
            done["files"] = report(spec, spec_text, data)
        else:
            raise ValueError(f"step must be benchmark, audit or report, got {step!r}")
    return done
