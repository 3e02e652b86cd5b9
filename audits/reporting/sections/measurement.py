"""Report section on the measurement: replays, bounds, and their assumptions."""

from __future__ import annotations

from collections.abc import Sequence

from bandana.audits.bounds.methods import WORDS
from bandana.audits.documents.audit import Audit, Bound
from bandana.audits.documents.fields import present
from bandana.audits.documents.report import Report
from bandana.audits.reporting.blocks import (
    Block,
    Cell,
    Column,
    at_least,
    badge,
    fact_list,
    figure_block,
    heading,
    paragraph,
    right,
    shared_facts,
    table_block,
)
from bandana.audits.reporting.figures import audit_plots
from bandana.audits.reporting.numbers import DELTA, DIVERGENCE, EPSILON, MU, PURE, RHO, kind_of, name_of, number

VIEWS = {
    "transcript": "Sees every released noisy value and every action, and knows all other records. No adversary sees more.",
    "actions": "Sees only the actions of the other users, and knows all other records.",
    "report": "Sees the message of one user; under local privacy nobody else is trusted.",
    "one_run": "Sees a single run with many canaries, each included or excluded by its own fair coin.",
    "output": "Sees what one run returns, and knows both data sets.",
}
"""Description of each view of the adversary."""

_TESTS = {
    MU: "Assumes that the claim is a Gaussian-DP one; it is then the sharpest.",
    EPSILON: "Assumes nothing about the mechanism, and tests any claim of an ε at this δ. It is usually smaller than the "
    "ε to which the bound on µ converts.",
    PURE: "Assumes nothing about the mechanism, and tests a claim of pure differential privacy.",
    DELTA: "Assumes nothing about the mechanism: the probability of one event that exceeds e^ε times the other side's.",
    DIVERGENCE: "Assumes nothing about the mechanism, and tests a claim of Rényi differential privacy at this order.",
    RHO: "Assumes nothing about the mechanism, and tests a claim of zero-concentrated differential privacy.",
}


def measurement(document: Report) -> list[Block]:
    """Replays of each audit, the strongest bounds, and their assumptions."""
    audits = document["audits"]
    blocks: list[Block] = [
        paragraph(
            "The algorithm was replayed many times on a data set and on a neighbor that differs in one record. An attack "
            "gave each replay a score: larger scores indicate the neighbor. The further apart the scores of the two data "
            "sets are, the larger the privacy loss must be; the lower bound allows for chance. If it exceeds the claim, "
            "the claim is refuted."
        )
    ]
    blocks += shared_facts(
        audits,
        [
            ("Replayed data", lambda a: a["measurement"]["table"]),
            ("Replays per side, at most", lambda a: number(a["measurement"]["replays_per_side"])),
            ("Confidence", _confidence),
            ("Seed", lambda a: str(a["measurement"]["seed"])),
            ("Validity", lambda a: a["measurement"]["text"]),
        ],
        "Set-up by audit",
    )
    blocks += [
        heading("Lower bounds"),
        paragraph(
            "A bound was computed for each budget, view, quantity and neighbor. The table shows the strongest for each "
            "budget, view and quantity; the JSON file of this report lists all of them. The failure probability covers "
            "all bounds, so showing only the strongest costs no confidence."
        ),
    ]
    blocks += [block for audit in audits for block in _bounds(audit)]
    blocks += [heading("What each bound assumes"), fact_list(_assumptions(audits))]
    curves = [audit for audit in audits if audit["tradeoff"] is not None]
    if curves:
        blocks += [
            heading("Trade-off between the two error rates"),
            paragraph(
                "The claim rules out any attack in the shaded region. A curve on the dotted diagonal means that the attack "
                "does no better than guessing. The strip below each panel is the gap to the claim, in percentage points: "
                "how much larger the false-negative rate is than the claim allows at least. The attack's curve is a sample, "
                "and may cross the limit by chance; the dashed bound allows for that. Axes are cut if the claim is weak. If "
                "the claim is so strong that all curves lie on the diagonal, the test budget decides."
            ),
            figure_block(
                "error rates",
                "Error rates of the sharpest attack of each audit at its claimed budget, the limit set by the claim, and "
                "the curve of the measured lower bound on µ.",
                [
                    (
                        audit_plots.tradeoff_curve(audit),
                        f"Trade-off curves of {audit['label']}: false-negative against false-positive rate. Claimed µ "
                        f"{number(audit['claim']['mu'])}; measured µ {at_least(present(audit['tradeoff'])['mu_lower'])}.",
                    )
                    for audit in curves
                ],
                titles=[audit["label"] for audit in curves],
                size="small",
            ),
        ]
    return blocks


def _confidence(audit: Audit) -> str:
    return f"{number(100 * audit['measurement']['confidence'])} %"


def strongest(bounds: Sequence[Bound]) -> list[Bound]:
    """Largest bound of each budget, view and quantity, in the order in which these first occur."""
    largest: dict[tuple[str, str, str], Bound] = {}
    for bound in bounds:
        key = (bound["budget"], bound["view"], bound["quantity"])
        if key not in largest or (bound["lower"] or 0.0) > (largest[key]["lower"] or 0.0):
            largest[key] = bound
    return list(largest.values())


def _bounds(audit: Audit) -> list[Block]:
    taken = audit["measurement"]["bounds"]
    if not taken:
        return [paragraph(f"{audit['label']}: no bound was computed.")]
    shown = strongest(taken)
    has_budgets = any(bound["budget"] == "test" for bound in taken)
    columns: list[Column] = ["Budget"] if has_budgets else []
    columns += ["View", "Quantity", right("measured", "measured"), right("claimed", "claimed")]
    columns += ["Neighbor", "Attack; method", right("Replays")]
    rows = [
        [
            *([bound["budget"]] if has_budgets else []),
            bound["view"],
            name_of(bound["quantity"]),
            _compared(bound),
            number(bound["claimed"]),
            bound["neighbor"],
            f"{bound['attack']}; {bound['method']}",
            _sizes(bound),
        ]
        for bound in shown
    ]
    all_of = f"the only bound holds with {_confidence(audit)} confidence"
    if len(taken) > 1:
        all_of = f"the strongest bound of each kind; all {len(taken)} bounds hold together with "
        all_of += f"{_confidence(audit)} confidence"
    return [
        table_block(
            f"{audit['label']}: {all_of}.",
            columns,
            rows,
            widths=[*([1.1] if has_budgets else []), 1.4, 1.5, 1.2, 1.1, 2.8, 2.2, 1.4],
        )
    ]


def _compared(bound: Bound) -> Cell:
    lower, claimed = bound["lower"], bound["claimed"]
    is_above = lower is not None and claimed is not None and lower > claimed
    return badge(at_least(lower), "bad") if is_above else at_least(lower)


def _sizes(bound: Bound) -> str:
    data, neighbor = bound["n_data"], bound["n_neighbor"]
    if bound["view"] == "one_run":
        return f"1 run, {number(data + neighbor)} canaries"
    return f"2 × {number(data)}" if data == neighbor else f"{number(data)} + {number(neighbor)}"


def _assumptions(audits: list[Audit]) -> list[tuple[str, str]]:
    """One line for each view, quantity and method in use."""
    taken = [bound for audit in audits for bound in audit["measurement"]["bounds"]]
    facts: list[tuple[str, str]] = [
        (f"View “{view}”", VIEWS[view]) for view in dict.fromkeys(bound["view"] for bound in taken)
    ]
    if any(bound["budget"] == "test" for bound in taken):
        facts.append(("Budget “test”", "The same algorithm with rescaled noise, see “Power and planted faults”."))
    facts += [
        (f"A bound on {name_of(quantity)}", _TESTS[kind_of(quantity)])
        for quantity in dict.fromkeys(bound["quantity"] for bound in taken)
    ]
    unknown = "Documented in the module bandana.audits.bounds.methods."
    facts += [(f"Method {name}", WORDS.get(name, unknown)) for name in dict.fromkeys(bound["method"] for bound in taken)]
    facts.append(("All bounds", "Replays are independent and identically distributed."))
    if any(audit["epsilon"]["measured"] is not None for audit in audits):
        text = "With nothing assumed, it is the largest bound on ε at δ. If Gaussian DP is assumed, it is the conversion of "
        text += (
            "the largest bound on µ; that holds if the noise is Gaussian, as the ledger records it. The verdict compares "
        )
        text += "the larger of both with the claim."
        facts.append(("Measured ε", text))
    return facts
