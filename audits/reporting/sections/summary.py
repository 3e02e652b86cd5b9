"""Report sections on the audits: what was measured, what could have been seen, and the terms of the appendix."""

from __future__ import annotations

from bandana.audits.documents.audit import Audit, Main, Role
from bandana.audits.documents.report import Report
from bandana.audits.reporting import origin
from bandana.audits.reporting.blocks import (
    Block,
    Cell,
    Column,
    at_least,
    bullets,
    fact_list,
    link_of,
    right,
    table_block,
    verdict_badge,
)
from bandana.audits.reporting.figures.drawing import ROLES
from bandana.audits.reporting.numbers import NONE, number, symbol_of
from bandana.audits.reporting.sections.label import related
from bandana.audits.reporting.sections.power import factor_of, fault_matrix
from bandana.audits.reporting.sections.strength import HELD

_GLOSSARY = {
    "µ (mu)": "The same promise as ε and δ in one number (Gaussian differential privacy). To tell two data sets apart that "
    "differ in one record is as hard as to tell N(0, 1) from N(µ, 1). Smaller is more private.",
    "Main quantity": "The main quantity of a claim, in its own definition: µ, ε (without a δ: pure privacy), D for a Rényi "
    "divergence, or ρ for zero-concentrated privacy.",
    "Smallest detectable fault": "The power of the audit. With 95 % probability it would have caught a true value this many "
    "times the claimed one. For µ and for pure ε this means noise that is too small by this factor.",
    "Planted fault": "A deliberately broken copy of the algorithm. An audit that misses it has too little power for a PASS.",
}
"""Terms of the appendix, each with its meaning; those of the first screen stand there."""


def summary(document: Report) -> list[Block]:
    """Table of the audits; of a catalog with all verdicts and planted faults. Below, why some did not pass."""
    audits, own = document["audits"], {entry["label"]: entry["path"] for entry in document["related"]}
    if document["kind"] == "catalog":
        head = [*related(document), *origin.caveat(document["provenance"])]
        return [*head, _verdicts(audits, own), *fault_matrix(document)]
    rows: list[list[Cell]] = []
    for audit in audits:
        measured, caught = audit["measured_epsilon"], sum(control["caught"] for control in audit["controls"])
        lower = [at_least(measured["unconditional"]), at_least(measured["gaussian"])]
        row: list[Cell] = [link_of(audit["label"], own.get(audit["label"])), audit["claim"]["statement"], *lower]
        rows.append([*row, factor_of(audit["measurement"]["smallest_factor"]), f"{caught}/{len(audit['controls'])}"])
    columns: list[Column] = ["Algorithm", "Claim", right("nothing assumed", "measured"), right("if Gaussian DP", "measured")]
    columns += [right("Smallest detectable fault"), right("Faults caught")]
    caption = (
        "What the attacks measured, what they could have seen, and how many planted faults they caught. Smallest detectable "
        "fault: how many times its claimed value the loss must be for the audit to see it, with 95 % probability."
    )
    groups = [("", 2), ("ε measured, at least", 2), ("", 2)]
    table = table_block(caption, columns, rows, groups=groups, widths=[2.2, 2.6, 1.2, 1.2, 1.2, 0.9])
    doubts = [f"{a['label']}: {a['verdict']}: {'; '.join(a['reasons'])}" for a in audits if a["verdict"] not in HELD]
    return [table, *([bullets(doubts)] if doubts else [])]


def glossary(document: Report) -> list[Block]:
    """Explains the terms of the appendix."""
    return [fact_list(list(_GLOSSARY.items()))]


def _verdicts(audits: list[Audit], own: dict[str, str]) -> Block:
    columns: list[Column] = ["Algorithm or building block", "Verdict", *(right(role, role) for role in ROLES)]
    rows: list[list[Cell]] = []
    for audit in audits:
        row: list[Cell] = [link_of(audit["label"], own.get(audit["label"])), verdict_badge(audit["verdict"])]
        row += [main_number(audit["main"], role) for role in ROLES]
        caught = sum(control["caught"] for control in audit["controls"])
        rows.append([*row, factor_of(audit["measurement"]["smallest_factor"]), f"{caught}/{len(audit['controls'])}"])
    return table_block(
        "Verdicts. Claimed: by the source, in its own definition. Accounted: from the ledger of this run. "
        f"Measured: a lower bound from attacks. A dash ({NONE}): no finite number, or no ledger to account.",
        [*columns, right("Smallest detectable fault"), right("Faults caught")],
        rows,
        widths=[2.6, 2.0, *[1.25] * 3, 1.2, 0.95],
    )


def main_number(main: Main, role: Role) -> str:
    """Main quantity of a claim in one of its roles, with its symbol."""
    value = main[role]
    if value is None:
        return at_least(value) if role == "measured" else number(value)
    return f"{symbol_of(main['quantity'])} {'≥' if role == 'measured' else '='} {number(value)}"
