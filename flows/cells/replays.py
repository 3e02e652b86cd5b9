"""Audits a cell: replays on neighboring data sets, with its planted faults. Nothing is stored here."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bandana.algorithms.entry import Settings
from bandana.algorithms.environments.episodes import Table
from bandana.audits.audit import Recall, audit
from bandana.audits.faults.catalog import CONTROLS
from bandana.audits.faults.releases import GENERIC, of_users
from bandana.audits.outcome import Effort, Outcome, Setup, all_gaussian
from bandana.audits.own.white_box import with_places
from bandana.audits.replays.replay import played
from bandana.audits.seeds import derive
from bandana.audits.testbeds import catalog as beds
from bandana.audits.trial import Audited, Trial, Whole
from bandana.flows.annex import DEVICE, plugged
from bandana.privacy_core import Guarantee, PureDP

if TYPE_CHECKING:
    from bandana.audits.subjects import Subject
    from bandana.flows.plan.cells import Cell
    from bandana.flows.problems.environment import Environment, EnvironmentFields

About = Callable[[str, tuple[int, ...], int], Setup]
"""Table, probes and seed -> what a reader needs to repeat an audit."""


KeepPart = Callable[[Mapping[str, object], Callable[[], Outcome]], Outcome]
"""Facts that a part of an audit depends on beside the cell's own, and what makes it -> the part, kept or made now."""


def audit_of(cell: Cell, about: About, keep_part: KeepPart = lambda facts, make: make()) -> Outcome:
    """One audit with its controls.

    At its test budget an algorithm is the same whatever its claim: cells that differ in their privacy level share that part.
    """
    subject = audited_cell(cell, about)
    _, near, _ = _settings(cell, subject.trial.table)
    return _audit(
        subject,
        effort_of(cell),
        lambda planted, make: keep_part({"parameters": near.shown() if near else {}, "planted": planted}, make),
    )


def effort_of(cell: Cell) -> Effort:
    """Effort of a cell's audit."""
    audit = cell.audit
    return Effort(audit.replays, audit.confidence, audit.delta, audit.examples, cell.spec.seed)


def audited_cell(cell: Cell, about: About) -> Audited:
    """All that a catalog algorithm's cell is audited as, with the words that its evidence says of it."""
    audited = with_places(subject_of_cell(cell), effort_of(cell))
    table, probes = audited.trial.table, audited.trial.probes
    words = f"{data_of(cell.environment, table.n_actions)}{_played_with(cell, *_settings(cell, table))}"
    subject = {"kind": "catalog", "name": cell.name, "source": cell.entry.source}
    return replace(audited, subject=subject, about=about(words, probes, cell.spec.seed))


def audited_subject(subject: Subject, effort: Effort, about: About) -> Audited:
    """All that a subject of the audit of everything is audited as, with the words that its evidence says of it."""
    trial = subject.trial
    audited = with_places(Audited(trial, subject.at_test_budget, subject.controls), effort)
    words = {"kind": "catalog", "name": subject.label, "source": subject.source}
    return replace(audited, subject=words, about=about(str(trial.table), trial.probes, effort.seed))


def _audit(subject: Audited, effort: Effort, recall: Recall = lambda planted, make: make()) -> Outcome:
    device = os.environ.get(DEVICE)
    with played(plugged("devices")["torch"](device)) if device else nullcontext():
        return audit(
            subject.trial,
            subject.controls,
            effort,
            at_test_budget=subject.at_test_budget,
            subject=subject.subject,
            about=subject.about,
            recall=recall,
        )


def subject_of_cell(cell: Cell) -> Audited:
    """Subject that is audited of a catalog algorithm's cell."""
    table = cell.environment.audit_table()
    main, near, promised = _settings(cell, table)
    controls = CONTROLS.get(cell.entry.label, GENERIC)
    trial = replace(_trial(cell, main, table, cell.promised), whole=whole_of(cell))
    if cell.promised is not None and cell.users.most > 1:
        is_gaussian = all_gaussian(derive(trial.algorithm, table, seed=0, n_reps=1))
        controls = of_users(cell.entry.label, controls, cell.users, is_gaussian=is_gaussian)
    weak = None if near is None else replace(_trial(cell, near, table, promised), whole=trial.whole)
    return Audited(trial, weak, controls)


_MOST_NUMBERS = 1 << 23
"""Numbers in one data set of a walk, which takes a dozen such at once."""


def whole_of(cell: Cell) -> Whole | None:
    """The cell's algorithm and data over the whole horizon; None where replays are as long."""
    environment = cell.environment.whole()
    if environment.setting.rounds <= cell.environment.setting.rounds:
        return None
    problem = environment.audit_problem(cell.settings.problem, cell.entry)
    # Data of real people may be too few: the rows of a replay are played over and over, as a claim holds for all data.
    table, horizon = cell.environment.audit_table(), environment.setting.rounds
    rewards, covariates = table.rewards, table.covariates
    size = (rewards.size + (0 if covariates is None else covariates.size)) // len(rewards)
    n_walked = max(len(rewards), min(horizon, _MOST_NUMBERS // size))
    repeated = None if covariates is None else np.resize(covariates, (n_walked, *covariates.shape[1:]))
    data = table.with_rows(np.resize(rewards, (n_walked, *rewards.shape[1:])), repeated)
    return Whole(cell.entry.build(replace(cell.settings, problem=problem)), data, horizon)


def _settings(cell: Cell, table: Table) -> tuple[Settings, Settings | None, Guarantee | None]:
    """The settings of replays, those at the test budget (None where the claim is near it), what users are promised there."""
    main = cell.environment.in_audit(cell.entry, cell.settings)
    if cell.promised is not None:
        claimed, (low, high) = cell.claim().gaussian.mu, beds.NEAR_TEST_BUDGET
        is_paid = isinstance(cell.promised, PureDP) or beds.spent_mu(cell.entry, main, table, cell.users) >= low * (1 - 1e-9)
        if low <= claimed <= high and is_paid:
            return main, None, None
        return main, *beds.at_user_test_budget(cell.entry, main, table, cell.users)
    if beds.is_near_test_budget(cell.entry, main, table):
        return main, None, None
    return main, beds.at_test_budget(cell.entry, main, table), None


def data_of(environment: Environment[EnvironmentFields], n_actions: int) -> str:
    """Description of what is replayed, in words."""
    name = environment.describe()["name"]
    data = f" of {name}" if environment.shows("values") else ", drawn at random: the data are private"
    what = "arms" if environment.has_arms else "actions"
    return f"{environment.setting.rounds} {environment.unit} x {n_actions} {what}{data}"


def audit_of_subject(subject: Subject, effort: Effort, about: About) -> Outcome:
    """One audit of a subject of the audit of everything, with its controls, and more replays where these need them."""
    from bandana.audits.subjects import OWN_SIZES

    effort = replace(effort, replays=round(effort.replays * OWN_SIZES.get(subject.label, (0, 1.0))[1]))
    return _audit(audited_subject(subject, effort, about), effort)


def _played_with(cell: Cell, main: Settings, near: Settings | None, promised: Guarantee | None) -> str:
    """The parameters that replays change, at the claimed and at the test budget, and the claim at which that one is."""
    changes = [_changed(cell, main), "" if near is None else _changed(cell, near)]
    words = f"; replays play with {changes[0]}" if changes[0] else ""
    if near is not None:
        also = f", with {changes[1]}" if changes[1] and changes[1] != changes[0] else ""
        words += f"; at the test budget as {promised or near.privacy}{also}"
    return words


def _changed(cell: Cell, played: Settings) -> str:
    given = cell.settings.parameters
    changed = {name: value for name, value in played.parameters.items() if value != given[name]}
    return ", ".join(f"no {name}" if value is None else f"{name} = {value:.4g}" for name, value in changed.items())


def _trial(cell: Cell, played: Settings, table: Table, promised: Guarantee | None) -> Trial:
    entry = cell.entry
    assert entry.probes is not None
    users = None if promised is None else cell.users
    return Trial(entry.build(played), cell.claim_at(played, promised), table, entry.probes(table.n_actions), users=users)
