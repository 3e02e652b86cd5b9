"""Checklist of a report after NIST SP 800-226: what the report answers, what the operator declares, what nobody covers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from bandana.audits.documents.report import Report
from bandana.audits.reporting.blocks import Block, Cell, badge, heading, link, paragraph, table_block
from bandana.audits.reporting.numbers import NONE
from bandana.audits.reporting.sections.rounds import is_whole
from bandana.audits.reporting.sections.strength import is_secure, on_private_data, promises

ANSWERED, DECLARED, NOT_COVERED = "answered", "declared", "not covered"
"""The three states of a question: by what was computed, by the operator's word, or not at all."""


class Item(NamedTuple):
    """One question of the checklist.

    Attributes:
      topic: in a few words.
      question: in one sentence.
      state: answered, declared or not covered.
      answer: in a few words; of what is not covered, what to do.
      section: id of the section that has the answer; empty if none has.
    """

    topic: str
    question: str
    state: str
    answer: str
    section: str


_Answer = tuple[str, str, str]
"""State, answer and section."""


def items(document: Report) -> list[Item]:
    """Every question of the checklist with its state in a report."""
    return [Item(topic, question, *answer(document)) for topic, question, answer in _QUESTIONS]


def checklist(document: Report) -> list[Block]:
    """The checklist, and lines for who prepared, reviewed and approved the report; of a catalog the lines alone."""
    blocks: list[Block] = []
    if document["kind"] != "catalog":
        entries = items(document)
        counts = ", ".join(
            f"{sum(item.state == state for item in entries)} {state}" for state in (ANSWERED, DECLARED, NOT_COVERED)
        )
        blocks = [
            paragraph(
                f"{len(entries)} questions after NIST SP 800-226, Guidelines for Evaluating Differential Privacy Guarantees "
                f"(2025): {counts}. Answered: by what this report computed. Declared: by the operator, and not checked. Not "
                "covered: neither; somebody must answer it before a deployment."
            ),
            table_block(
                "Checklist",
                ["Topic", "Question", "State", "Answer", "Section"],
                [[item.topic, item.question, _state(item.state), item.answer, _where(item)] for item in entries],
                widths=[1.45, 3.3, 0.9, 2.9, 1.25],
            ),
        ]
    sign_off: Block = {
        "kind": "sign_off",
        "columns": ["Role", "Name", "Date", "Decision and signature"],
        "rows": ["Prepared by", "Reviewed by", "Approved by"],
    }
    return [*blocks, heading("Sign-off"), sign_off]


def _state(state: str) -> Cell:
    return badge(state, "unsure") if state == NOT_COVERED else state


def _where(item: Item) -> Cell:
    title = _TITLES.get(item.section)
    return NONE if title is None else {"spans": [link(title, f"#{item.section}")]}


_TITLES = {
    "answer": "In short",
    "label": "Label",
    "audits": "Audits",
    "regret": "Regret",
    "scope": "Scope",
    "mechanism": "Mechanism",
    "measurement": "Measurement",
    "controls": "Power",
    "evidence": "Evidence",
}


Field = Literal["purpose", "data_source", "license", "retention", "approver", "expires"]
"""Fields of a deployment that answer a question."""


def _never(advice: str) -> Callable[[Report], _Answer]:
    return lambda document: (NOT_COVERED, advice, "")


def _if_private(answer: str, section: str) -> Callable[[Report], _Answer]:
    def state(document: Report) -> _Answer:
        if not any(True for _ in promises(document)):
            return NOT_COVERED, "No privacy is promised.", ""
        return ANSWERED, answer, section

    return state


def _if_audited(answer: str, section: str) -> Callable[[Report], _Answer]:
    def state(document: Report) -> _Answer:
        if not document["audits"]:
            return NOT_COVERED, "No audit was run: run `bandana audit`.", ""
        return ANSWERED, answer, section

    return state


def _if_declared(field: Field) -> Callable[[Report], _Answer]:
    def answer(document: Report) -> _Answer:
        declared = document["deployment"]
        value = None if declared is None else declared[field]
        if value is None:
            return NOT_COVERED, f"Declare it: deployment.{field}.", ""
        return DECLARED, value.rstrip(".") + ".", "label"

    return answer


def _people(document: Report) -> _Answer:
    if document["people"]["count"] is None:
        return NOT_COVERED, "The number of people is not known.", ""
    declared = document["deployment"]
    is_declared = declared is not None and declared["people"] is not None
    return (DECLARED if is_declared else ANSWERED), "Compared with 1/n for n people.", "label"


def _all_runs(document: Report) -> _Answer:
    unread = [book for book in document["books"] if book["problem"] is not None]
    booked = {book["environment"] for book in document["books"]}
    if unread:
        return NOT_COVERED, "A budget book cannot be read.", "label"
    if any(cell["environment"] not in booked for cell in on_private_data(document)):
        return NOT_COVERED, "Other reports are not: name a budget book.", "label"
    return ANSWERED, "A budget book adds up all runs." if booked else "No run here reads private data.", "label"


def _power(document: Report) -> _Answer:
    if not document["audits"]:
        return NOT_COVERED, "No audit was run: run `bandana audit`.", ""
    if document["kind"] != "catalog" and not is_whole(document):
        return NOT_COVERED, "Later rounds were not seen.", "label"
    return ANSWERED, "The smallest detectable fault.", "controls"


def _noise(document: Report) -> _Answer:
    if is_secure(document):
        return ANSWERED, "Discrete noise, cryptographic generator.", "label"
    return NOT_COVERED, "Floating-point noise from a known seed.", "label"


def _unprotected(document: Report) -> _Answer:
    declared = document["deployment"]
    if declared is not None and declared["unprotected"] is not None:
        return DECLARED, ", ".join(declared["unprotected"]).rstrip(".") + ".", "label"
    kinds = {each["data"] for each in document["environments"]}
    if kinds <= {"simulated"}:
        return ANSWERED, "The data are nobody's.", "label"
    return NOT_COVERED, "Declare it: deployment.unprotected.", ""


def _utility(document: Report) -> _Answer:
    if document["benchmark"] is None:
        return NOT_COVERED, "No benchmark was run.", ""
    return ANSWERED, "Regret, with and without noise.", "regret"


_QUESTIONS: tuple[tuple[str, str, Callable[[Report], _Answer]], ...] = (
    ("Privacy parameters", "What do ε and δ mean for one person?", _if_private("ε, odds and right guesses.", "answer")),
    ("Strength", "How strong is it, by published thresholds?", _if_private("Rated, with its reason.", "answer")),
    ("Number of people", "Is δ small for the number of people?", _people),
    ("Definition", "Which definition is claimed, and by whom?", _if_audited("The claim with its source.", "scope")),
    (
        "Unit of privacy",
        "Is an event, a record or a person protected?",
        _if_private("One record; k records by up to k × ε.", "label"),
    ),
    ("Neighbors", "Which data sets are neighbors?", _if_private("The relation of each claim.", "label")),
    ("Trust model", "Who sees the data before noise is added?", _if_private("Central, joint or local.", "label")),
    (
        "Adversary",
        "What does the adversary see and know?",
        _if_audited("Sees all releases, knows all other records.", "measurement"),
    ),
    (
        "Composition in a run",
        "Are all releases of a run added up?",
        _if_audited("Every release is charged in a ledger.", "mechanism"),
    ),
    ("Composition of runs", "Are all runs on the same people added up?", _all_runs),
    ("Implementation", "Does the code do what was proved?", _if_audited("Replays, searches, planted faults.", "audits")),
    ("Power of the tests", "Could the tests have found a fault?", _power),
    ("Noise", "Is it safe in its last bits, and its seed secret?", _noise),
    ("Side channels", "Do running time, memory or errors reveal data?", _never("Not measured: treat both as visible.")),
    ("Unprotected quantities", "What is published without noise?", _unprotected),
    ("Utility", "What does privacy cost?", _utility),
    ("Bias", "Does noise harm small groups more?", _never("Only averages over all people are shown.")),
    ("Purpose", "What is the release for?", _if_declared("purpose")),
    ("Data source", "Where do the data come from?", _if_declared("data_source")),
    ("License", "Under which license or law are they used?", _if_declared("license")),
    ("Retention and access", "Who reaches the data, and how long?", _if_declared("retention")),
    ("Approval", "Who approved the release?", _if_declared("approver")),
    ("Expiry", "When must it be reviewed again?", _if_declared("expires")),
    ("Evidence", "Can a stranger check the numbers?",
     lambda _: (ANSWERED, "Hashes, and commands to recompute.", "evidence")),
)
