"""Report sections with all verdicts, the planted faults, the epsilons, and how to read the numbers."""

from __future__ import annotations

from bandana.audits.documents.audit import Main, Role, Three
from bandana.audits.documents.report import Report
from bandana.audits.reporting import origin
from bandana.audits.reporting.blocks import (
    Block,
    Column,
    at_least,
    fact_list,
    figure_block,
    link_of,
    right,
    table_block,
    verdict_badge,
)
from bandana.audits.reporting.document import has_ledger
from bandana.audits.reporting.figures import audit_plots
from bandana.audits.reporting.figures.drawing import ROLES
from bandana.audits.reporting.numbers import NONE, name_of, number, symbol_of, unit_of
from bandana.audits.reporting.sections.label import related
from bandana.audits.reporting.sections.power import factor_of, fault_matrix
from bandana.audits.reporting.sections.strength import promise_of, strength_of

_GLOSSARY = {
    "ε (epsilon), δ (delta)": "Bound on the privacy loss, in nats: replacing one record makes any outcome at most exp(ε) "
    "times as likely, except with probability about δ. Smaller is more private.",
    "µ (mu)": "The same promise in one number (Gaussian differential privacy): distinguishing two data sets that differ in "
    "one record is as hard as distinguishing N(0, 1) from N(µ, 1). Smaller is more private.",
    "Main quantity": "The main quantity of a claim, in its own definition: µ, ε (without a δ: pure privacy), D for a Rényi "
    "divergence, or ρ for zero-concentrated privacy.",
    "Measured": "A statistical lower bound: with the stated confidence the true privacy loss is at least this large. A "
    "value below the claim is expected; a value above it refutes the claim.",
    "Smallest detectable fault": "The power of the audit. With 95 % probability it would have caught a true value this many "
    "times the claimed one; for µ and for pure ε this means noise that is too small by this factor.",
    "Planted fault": "A deliberately broken copy of the algorithm. An audit that misses it has too little power for a PASS.",
    "Regret": "Reward lost compared with the best action, summed over the {unit}. Smaller is better.",
}
"""Terms of the report, each with its meaning."""


def summary(document: Report) -> list[Block]:
    """Table of verdicts, matrix of planted faults, and figure of the epsilons."""
    audits, is_catalog = document["audits"], document["kind"] == "catalog"
    blocks = [*related(document), *origin.caveat(document["provenance"])] if is_catalog else []
    blocks += [_verdicts(document), *fault_matrix(document)]
    drawn = [audit for audit in audits if any(value is not None for value in audit["epsilon"].values())]
    for start in range(0, len(drawn), 10):
        part = drawn[start : start + 10]
        rows = "; ".join(
            f"{a['label']}: claimed {number(a['epsilon']['claimed'])}, "
            f"{'accounted ' + number(a['epsilon']['accounted']) if has_ledger(a) else 'no ledger to account'}, "
            f"measured {at_least(a['measured_epsilon']['unconditional'])} with nothing assumed, "
            f"{at_least(a['measured_epsilon']['gaussian'])} if Gaussian DP"
            for a in part
        )
        blocks.append(
            figure_block(
                "claimed accounted measured",
                "The epsilons of each audit. Claimed must be at least accounted, and accounted at least measured: the marks "
                "of one audit must not move right from top to bottom. Hollow: measured with nothing assumed.",
                [(audit_plots.epsilons(part), f"Dot plot of epsilon. {rows}.")],
                size="medium",
            )
        )
    return blocks


def glossary(document: Report) -> list[Block]:
    """Explains how to read the numbers."""
    mains = {audit["main"]["quantity"] for audit in document["audits"]}
    left_out = {"Main quantity"} if len(mains) == 1 else set()
    left_out |= {"Regret"} if document["benchmark"] is None else set()
    unit = unit_of(document["environments"])
    return [fact_list([(term, text.format(unit=unit)) for term, text in _GLOSSARY.items() if term not in left_out])]


def _verdicts(document: Report) -> Block:
    audits, is_catalog = document["audits"], document["kind"] == "catalog"
    own = {entry["label"]: entry["path"] for entry in document["related"]}
    people = document["people"]["count"]
    deltas = {audit["delta"] for audit in audits}
    one_delta = len(deltas) == 1
    at = f"ε at δ = {number(next(iter(deltas)))}" if one_delta else "ε at δ"
    columns: list[Column] = ["Algorithm or building block" if is_catalog else "Algorithm", "Verdict"]
    columns += [] if is_catalog else ["Claim"]  # it has no room on a page that holds everything
    columns += [] if one_delta else [right("δ")]
    groups = [("", len(columns))]
    mains = list(dict.fromkeys(audit["main"]["quantity"] for audit in audits))
    main_name = name_of(mains[0]) if len(mains) == 1 else "Main quantity"
    for title in (at, main_name) if is_catalog else (main_name,):  # the label has the epsilons of an experiment
        columns += [right(role, role) for role in ROLES]
        groups.append((title, 3))
    columns += [right("Smallest detectable fault"), right("Faults caught")]
    groups.append(("", 2))
    rows = []
    for audit in audits:
        strength = strength_of(promise_of(audit), people).word
        row = [link_of(audit["label"], own.get(audit["label"])), verdict_badge(audit["verdict"], strength)]
        row += [] if is_catalog else [audit["claim"]["statement"]]
        row += [] if one_delta else [number(audit["delta"])]
        row += [_role_number(audit["epsilon"], role) for role in ROLES] if is_catalog else []
        row += [main_number(audit["main"], role, names=len(mains) > 1) for role in ROLES]
        caught = sum(control["caught"] for control in audit["controls"])
        row += [factor_of(audit["measurement"]["smallest_factor"]), f"{caught}/{len(audit['controls'])}"]
        rows.append(row)
    n_numbers = 6 if is_catalog else 3
    return table_block(
        "Verdicts. Claimed: by the source. Accounted: by our accountant, from the ledger of this run. Measured: a lower "
        f"bound from attacks. A dash ({NONE}): no finite number, or no ledger to account. Green: a strong promise that "
        "passed.",
        columns,
        rows,
        groups=groups,
        widths=([2.6, 2.0] if is_catalog else [1.9, 1.9, 2.4])
        + ([] if one_delta else [0.8])
        + [1.25] * n_numbers
        + [1.2, 0.95],
    )


def _role_number(values: Three, role: Role) -> str:
    return at_least(values[role]) if role == "measured" else number(values[role])


def main_number(main: Main, role: Role, *, names: bool) -> str:
    """Main quantity of a claim in one of its roles; `names` adds its symbol."""
    value = main[role]
    if value is None or not names:
        return _role_number(main, role)
    sign = "≥" if role == "measured" else "="
    return f"{symbol_of(main['quantity'])} {sign} {number(value)}"
