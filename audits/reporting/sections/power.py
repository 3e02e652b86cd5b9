"""Report sections on power: the smallest detectable fault, and the planted faults with their outcomes."""

from __future__ import annotations

from collections.abc import Sequence

from bandana.audits.documents.audit import Audit
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
    table_block,
)
from bandana.audits.reporting.figures import audit_plots
from bandana.audits.reporting.numbers import MU, NONE, PURE, kind_of, name_of, number

_CHECKS = {
    "sampling": "Replays and lower bounds: the measured value must exceed the limit, the smaller of claimed and accounted.",
    "deterministic": "The deterministic audit must find a counterexample.",
    "noise": "The noise audit must find that the noise does not match its declaration.",
}
_LONGEST_TITLE = 110
_MOST_COLUMNS = 6


def factor_of(factor: float | None) -> str:
    """Text of the smallest detectable factor."""
    return "none" if factor is None else f"× {number(factor)}"


def power(document: Report) -> list[Block]:
    """Smallest detectable fault of each audit, and what was planted."""
    audits = document["audits"]
    blocks: list[Block] = [
        heading("Smallest detectable fault"),
        fact_list([(audit["label"], _power_of(audit)) for audit in audits]),
    ]
    if any(audit["measurement"]["test_budget"] is not None for audit in audits):
        blocks.append(
            paragraph(
                "Test budget: the noise scale is proportional to 1/µ (to 1/ε for pure privacy). So a fault in the noise, "
                "the sensitivity or the charge has the same factor at every budget. At a very small or large budget that "
                "factor disappears in the sampling error. The same code is therefore audited again with noise for a budget "
                "of about 1, and the faults are planted there."
            )
        )
    blocks += _power_curves(audits)
    blocks.append(heading("Planted faults"))
    if not any(audit["controls"] for audit in audits):
        text = "No planted fault was tried. Without planted faults an audit has no proven power and gives no PASS."
        return [*blocks, paragraph(text)]
    blocks.append(
        paragraph(
            "Each fault was planted into a copy of the algorithm, which was then audited with the same effort. If a "
            "required check misses one of them, the audit gives no PASS, whatever it measured. The JSON file of this report "
            "has all numbers."
        )
    )
    checks = dict.fromkeys(check for audit in audits for c in audit["controls"] for check in c["expected"] + c["caught_by"])
    blocks.append(fact_list([(f"Check “{check}”", _CHECKS[check]) for check in _CHECKS if check in checks]))
    faults = {(c["name"], c["fault"], _in_order(c["expected"])): None for a in audits for c in a["controls"]}
    blocks.append(
        table_block(
            "Planted faults",
            ["Name", "Fault", "Checks that must catch it"],
            [[_in_words(name), fault, expected or NONE] for name, fault, expected in faults],
            widths=[2, 4.5, 2.2],
        )
    )
    return [*blocks, *fault_matrix(document)]


def fault_matrix(document: Report) -> list[Block]:
    """Outcome of each planted fault in each audit: one row a fault, one column an audit."""
    blocks: list[Block] = []
    for alike in _with_same_faults(document["audits"]):
        for start in range(0, len(alike), _MOST_COLUMNS):
            part = alike[start : start + _MOST_COLUMNS]
            rows: list[list[Cell]] = [
                [_in_words(name), *(_outcome(audit, name) for audit in part)]
                for name in dict.fromkeys(control["name"] for audit in part for control in audit["controls"])
            ]
            caption = (
                "Planted faults: an audit that misses one gives no PASS." if not blocks else "Planted faults, continued."
            )
            if not blocks:
                caption += (
                    " A number is the largest lower bound on the main quantity of the faulty copy, where replays had to "
                    "catch it; “caught” means by another check."
                )
            columns: list[Column] = ["Fault", *(right(audit["label"]) for audit in part)]
            blocks.append(table_block(caption, columns, rows, widths=[1.6] + [1.1] * len(part)))
    return blocks


def _with_same_faults(audits: Sequence[Audit]) -> list[list[Audit]]:
    groups: dict[tuple[str, ...], list[Audit]] = {}
    for audit in audits:
        if audit["controls"]:
            groups.setdefault(tuple(sorted(control["name"] for control in audit["controls"])), []).append(audit)
    return list(groups.values())


def _outcome(audit: Audit, name: str) -> Cell:
    control = next((each for each in audit["controls"] if each["name"] == name), None)
    if control is None:
        return NONE
    if not control["caught"]:
        return badge(f"MISSED by {_in_order([c for c in control['expected'] if c not in control['caught_by']])}", "bad")
    return at_least(control["measured"]) if "sampling" in control["expected"] else "caught"


def _power_curves(audits: Sequence[Audit]) -> list[Block]:
    drawn = [audit for audit in audits if audit["power"] is not None]
    if not drawn:
        return []
    texts = list(dict.fromkeys(present(audit["power"])["text"] for audit in drawn))
    groups: dict[str, list[Audit]] = {}
    for audit in drawn:  # audits of one effort at one budget have the same curve
        curve, smallest = present(audit["power"]), audit["measurement"]["smallest_factor"]
        rounded = [f"{value:.4g}" for value in (*curve["factors"], *curve["caught"], smallest or 0)]
        groups.setdefault(" ".join([curve["quantity"], *rounded]), []).append(audit)
    shared = list(groups.values())
    return [
        *[paragraph(text) for text in texts],
        figure_block(
            "power",
            "Power: the share of audits like this one that would refute the claim if the true value were this many times "
            "the claimed one. The diamond marks the smallest factor that 95 % of them catch.",
            [(audit_plots.power_curve(alike[0]), _describe_power(alike)) for alike in shared],
            titles=[_title([audit["label"] for audit in alike]) for alike in shared],
            size="small",
        ),
    ]


def _title(labels: Sequence[str]) -> str:
    whole = ", ".join(labels)
    if len(labels) == 1 or len(whole) <= _LONGEST_TITLE:
        return whole
    return f"{labels[0]}, and {len(labels) - 1} other{'s' if len(labels) > 2 else ''} with the same curve"


def _describe_power(alike: Sequence[Audit]) -> str:
    """Description of the curve by the first factors that reach a few shares."""
    curve = present(alike[0]["power"])
    points = list(zip(curve["factors"], curve["caught"], strict=True))
    reached = [(share, next((factor for factor, caught in points if caught >= share), None)) for share in (0.05, 0.5, 0.95)]
    shares = ", ".join(f"{number(100 * share)} % at × {number(factor)}" for share, factor in reached if factor is not None)
    return (
        f"Power curve of {', '.join(audit['label'] for audit in alike)}: share of audits that catch the fault, against "
        f"the factor by which {name_of(curve['quantity'])} exceeds the claim. "
        f"{'At least ' + shares if shares else 'Less than 5 % everywhere'}."
    )


def _power_of(audit: Audit) -> str:
    measured, test = audit["measurement"], audit["measurement"]["test_budget"]
    main = audit["main"] if test is None else test["main"]
    name = name_of(main["quantity"])
    factor, at_claim = measured["smallest_factor"], measured["smallest_factor_at_claim"]
    if kind_of(main["quantity"]) in (MU, PURE):
        fault, faults = f"noise too small by a factor of {number(factor)} or more", "noise that is too small"
    else:
        fault, faults = f"{name} at {number(factor)} or more times its claimed value", f"{name} beyond the claim"
    where = "" if test is None else " at the test budget"
    text = f"This audit would have caught, with 95 % probability, {fault}{where}"
    if factor is None:
        text = f"This audit would have caught no factor with 95 % probability{where}"
    may = f": {faults} may go unseen" if factor is None else ""
    if test is None:
        return f"{text}{may}."
    numbers = (
        f"claimed {number(main['claimed'])}, accounted {number(main['accounted'])}, measured {at_least(main['measured'])}"
    )
    at = "none" if at_claim is None else number(at_claim)
    return f"{text} ({at} at the claimed one){may}. Test budget: {test['claim']}; its {name}: {numbers}."


def _in_words(name: str) -> str:
    """Name of a fault, which commands write with hyphens."""
    return name.replace("-", " ").capitalize()


def _in_order(checks: Sequence[str]) -> str:
    return ", ".join(check for check in _CHECKS if check in checks)
