"""The suite flow: benchmark, audits, regression gate and report of one spec, one after the other."""

from __future__ import annotations

from pathlib import Path

import psutil
from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State

from bandana.flows import annex
from bandana.flows.folder.journal import Journal
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import Store
from bandana.flows.plan.plan import Plan
from bandana.flows.results import baseline, old_results
from bandana.flows.results.gate import Outcome, in_report, told
from bandana.flows.results.report import report
from bandana.flows.running.executors import Resources
from bandana.flows.suites.alarms import AlarmRaised, Findings, conclude, with_alarm
from bandana.flows.suites.step_flows import run_step
from bandana.flows.texts.json_text import JsonObject

STEPS = ("benchmark", "audit", "gate", "report")
"""Steps of the core; annexes add others."""


@task(name="gate", task_run_name="gate", cache_policy=NO_CACHE, persist_result=False)
def _gate(plan: Plan, spec_text: str, data: str) -> Outcome:
    """Holds what is in the store against the baseline."""
    folder, spec = DataFolder(Path(data)), plan.spec
    place = baseline.place_of(spec, folder)
    recorded = baseline.read(place)
    if recorded is None:
        advice = f"no baseline yet: record one with `bandana baseline {spec.name}.yaml`"
        return {"baseline": None, "rows": [], "notes": [advice]}
    return told(place, recorded, baseline.record(plan, spec_text, Store(folder.results)))


@flow(name="suite", flow_run_name="{plan.spec.name}", persist_result=False)
def suite_flow(
    plan: Plan, spec_text: str, data: str, steps: list[str], resources: Resources | None = None
) -> JsonObject | State[AlarmRaised]:
    """Runs the named steps of a plan whose data are bound; fails if an audit did not pass, or the gate found worse numbers.

    Steps are any of benchmark, audit, gate, report, and those of annexes, such as `fresh` of a night, in the order to run
    them. A report shows the spec's text; where there is a baseline, results are compared with it first, also without `gate`.

    Returns:
      `audits`, the outcomes; `gate`, its rows and notes, None where it did not run; `files`, the report's files; `fresh`,
      what the nights together say, a row for each cell; or a failed state, see `alarms.conclude`.
    """
    folder, spec = DataFolder(Path(data)), plan.spec
    folder.sweep()
    done: JsonObject = {"audits": [], "gate": None, "files": {}, "fresh": []}
    has_baseline = baseline.read(baseline.place_of(spec, folder)) is not None  # a bad one is told at once
    if folder.results.is_dir():
        old_results.find_in(plan.played, steps, folder).tell(folder.results)
    added = annex.plugged("steps")
    for step in steps:
        if step == "gate" or (step == "report" and has_baseline and done["gate"] is None):
            done["gate"] = _gate(plan, spec_text, data)
        if step == "benchmark":
            run_step(step, [plan], data, resources)
        elif step == "audit":
            done["audits"] = run_step(step, [plan], data, resources)
        elif step == "report":
            done["files"] = report(plan, spec_text, data, in_report(done["gate"]))
        elif step in added:
            done[step] = added[step](plan, folder)
        elif step not in STEPS:
            raise ValueError(f"step must be one of {', '.join([*STEPS, *added])}, got {step!r}")
    if set(steps) == {"report"}:
        return done  # shown again, and nothing new to raise an alarm about
    gate = done["gate"] or {"rows": [], "notes": []}
    parts = (done["audits"], gate["rows"], gate["notes"], done["files"], done["fresh"])
    return conclude(Findings(spec.name, *parts, plan.titles), done)


def suite(plan: Plan, spec_text: str, data: str, steps: list[str], resources: Resources | None = None) -> JsonObject:
    """Runs a command's flow, and journals when both began and ended; `alarm` is the flow's alarm in one line, or None."""
    journal = Journal(DataFolder(Path(data)).journal(plan.spec.name))
    journal.write("command started", began=psutil.Process().create_time(), steps=steps)
    done = with_alarm(lambda: suite_flow(plan, spec_text, data, steps, resources))
    journal.write("command done")
    return done
