"""A report written again from its spec and the files that it lists: every field of its document follows from these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from os import devnull
from pathlib import Path

import numpy as np

from bandana.audits.contents import PROVENANCE, read_description
from bandana.audits.documents.report import Report
from bandana.audits.evidence import read
from bandana.audits.reporting.sections.strength import private_cells
from bandana.audits.subjects import subjects
from bandana.flows.annexes.compliance.evidence.lines import OTHER_CODE, Line, differences, shortly
from bandana.flows.cells.play import BENCHMARK
from bandana.flows.folder.store import Store
from bandana.flows.keys.identity import asked_of, key_of
from bandana.flows.plan.cells import Cell
from bandana.flows.plan.keys import block_code
from bandana.flows.plan.plan import Plan
from bandana.flows.problems.kinds import environments_of
from bandana.flows.results.catalog_report import catalog_document, entry_of_subject
from bandana.flows.results.report_document import assemble, audit_documents
from bandana.flows.spec.spec import Spec
from bandana.flows.texts.json_text import JsonObject
from bandana.flows.texts.mistakes import SpecError

PART = "report"
_BASELINE = "regressions"
"""Field of a report that compares with an earlier run, which lies in no file of it."""


@dataclass(frozen=True)
class Quoted:
    """The experiment that evidence, a report or the reader names; its plan is derived once, where a line needs it."""

    spec: Spec

    @cached_property
    def plan(self) -> Plan:
        """Plan of the spec.

        Raises:
          SpecError: see `Plan.of`.
        """
        return Plan.of(self.spec)


class Packed(Store):
    """The results that a report lists, each under the request that it says it answers: nothing is computed or written.

    Args:
      places: files of evidence and of blocks.
      is_anonymous: whether the report leaves out user and host.
    """

    def __init__(self, places: Mapping[str, Path], *, is_anonymous: bool) -> None:
        super().__init__(Path(devnull))
        self.is_anonymous = is_anonymous
        self._places = {asked_of(key_of(_request(place).get("of", {}), {})): place for place in places.values()}

    def path(self, kind: str, key: str) -> Path:
        """Where the answer to a request lies, whatever code computed it."""
        return self._places.get(asked_of(key), Path(devnull) / key)

    def has(self, kind: str, key: str) -> bool:
        """True if an answer to the request is there."""
        return self.path(kind, key).exists()

    def load(self, kind: str, key: str, is_told: bool = True) -> tuple[dict[str, np.ndarray], JsonObject] | None:
        """Arrays and description.

        Raises:
          SpecError: the file is missing or damaged, and `is_told`; it is not computed again.
        """
        block = super().load(kind, key, is_told)
        if block is None and is_told:
            raise SpecError(f"{self.path(kind, key).name}: a block of the report's replications is missing or damaged")
        return block


def _request(place: Path) -> JsonObject:
    """Request that a result answers, and its code: `of` and `made`."""
    made = read_description(place).get(PROVENANCE)
    return made if isinstance(made, dict) else {}


def check_rebuilt(document: Report, places: Mapping[str, Path], experiment: Quoted | str) -> list[Line]:
    """Lines on every field of a report beside the report that its spec and its files give.

    Args:
      document: of the report.
      places: name of each listed file -> where it lies.
      experiment: of the report; or why none can be used.
    """
    if document["kind"] == "catalog":
        return [*_compared(document, _catalog(document, places)), *_unread(document)]
    if isinstance(experiment, str):
        return [Line("report: all other fields", "as stated", experiment, None, PART)]
    store = Packed(places, is_anonymous=_is_anonymous(document))
    try:
        plan = experiment.plan
        again = assemble(plan, document["spec"], store)
    except SpecError as error:
        is_private = any(environment.plays_private_rows for environment in environments_of(experiment.spec))
        words = "private rows are known by the secret of their data folder alone" if is_private else str(error)
        return [Line("report: all other fields", "as stated", words, None if is_private else False, PART)]
    if document["kind"] == "audit":
        singles = audit_documents(plan, again).values()
        labels = [entry["label"] for entry in document["audits"]]
        fitting = [each for each in singles if [entry["label"] for entry in each["audits"]] == labels]
        if not fitting:
            return [Line("report: audit", str(labels), "is no audit of this spec", False, PART)]
        again = fitting[0]
    return [*_compared(document, again), *_unread(document), *_check_code(plan, store, again), *_unaudited(plan, again)]


def _catalog(document: Report, places: Mapping[str, Path]) -> Report:
    outcomes = {outcome.subject["name"]: outcome for outcome in (read(place).outcome for place in places.values())}
    labels = [entry["label"] for entry in document["audits"]]
    if unknown := [label for label in labels if label not in subjects() or label not in outcomes]:
        raise SpecError(f"audits: {unknown[0]!r} is no subject of `bandana audit-catalog`, or its evidence is missing")
    is_anonymous = _is_anonymous(document)
    entries = [entry_of_subject(subjects()[label](), outcomes[label], is_anonymous=is_anonymous) for label in labels]
    effort = next(iter(outcomes.values())).effort
    return catalog_document(entries, effort, [places[file["path"]] for file in document["evidence"]["files"]])


def _is_anonymous(document: Report) -> bool:
    makers = document["provenance"]["makers"]
    return bool(makers) and all(maker["user"] is None and maker["host"] is None for maker in makers)


def _compared(document: Report, again: Report) -> list[Line]:
    stated, made = ({name: value for name, value in each.items() if name != _BASELINE} for each in (document, again))
    wrong = list(differences(_plain(stated), _plain(made)))
    lines = [Line(f"report: {place}", shortly(mine), shortly(theirs), False, PART) for place, mine, theirs in wrong]
    return [*lines, Line("report: fields from spec and files", str(len(made)), f"{len(wrong)} differ", not wrong, PART)]


def _plain(value: object) -> object:
    """JSON's own types: a tuple is a list."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _unread(document: Report) -> Iterator[Line]:
    if document["benchmark"] is not None:
        words = "nothing here plays them again; bandana run of the spec does"
        yield Line("replications", "as stated", words, None, "replications", is_claimed=True)
    if document.get(_BASELINE) is not None:
        yield Line(f"report: {_BASELINE}", "as stated", "needs the baseline", None, _BASELINE)


def _check_code(plan: Plan, store: Packed, again: Report) -> Iterator[Line]:
    """Checks that the code here computed the blocks, and their files are named after what they answer."""
    if again["benchmark"] is None:
        return
    wrong: list[str] = []
    for cell in plan.played:
        wrong += [cell.name for block in cell.blocks() if not _is_of(store.path(BENCHMARK, block.key), cell)]
    what = f"report: code of replications{f' of {wrong[0]}' if wrong else ''}"
    yield Line(what, "as recorded", OTHER_CODE if wrong else "the same code", not wrong, PART)


def _is_of(place: Path, cell: Cell) -> bool:
    request = _request(place) if place.is_file() else {}
    made = request.get("made", {})
    return made.get("code") == block_code(cell)["code"] and place.stem == key_of(request.get("of", {}), made)


def _unaudited(plan: Plan, again: Report) -> Iterator[Line]:
    """Private cells that the report shows and nobody audited: their claims rest on the accountant alone."""
    shown = {cell["label"] for cell in private_cells(again)}
    audited = {entry["label"] for entry in again["audits"]}
    for cell in plan.private:
        if cell.name in shown - audited:
            yield Line(f"{cell.name}: audit", "none", "no audit of it is in the report", None, "audits")
