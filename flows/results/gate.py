"""The regression gate: regret or tightness that is worse than the baseline by more than its confidence interval."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TypedDict

from scipy.special import stdtrit

from bandana.audits.documents.report import Regression, Regressions
from bandana.flows.results.baseline import REGRET, Baseline, CellFacts, Estimate

CONFIDENCE = 0.95
_VERDICTS = ("FAIL", "INCONCLUSIVE", "NOT REFUTED", "PASS")
_SAME = 1e-9


class Row(TypedDict):
    """One comparison of a cell's result with the baseline's.

    Attributes:
      quantity: what is compared: `final regret`, `tightness of mu`, `verdict`.
      difference: now - baseline, with its confidence interval from `low` to `high`; None for verdicts.
      is_worse: whether the whole interval lies on the bad side of 0.
    """

    label: str
    quantity: str
    baseline: float | str
    now: float | str
    difference: float | None
    low: float | None
    high: float | None
    is_worse: bool


def compare(baseline: Baseline, now: Baseline) -> tuple[list[Row], list[str]]:
    r"""Compares present results with a baseline.

    Each difference, now - baseline, has the interval of Welch's t-test,

        difference +- t \sqrt{s_0^2 + s_1^2},

    with the standard errors s_0 and s_1 of both and Welch's degrees of freedom. With m comparisons each interval has the
    confidence 1 - 0.05 / m (Bonferroni), so that all hold together with at least 95 %. Regret is worse if the whole interval
    lies above 0, tightness if it lies below: if nothing changed, the gate cries wolf with probability at most 2.5 %, however
    many cells there are. That counts for each version of the code and not for each night, since results of unchanged code
    are not computed again. Seeds do not depend on the code either: results of two versions go up and down together, which
    makes the difference less uncertain than it is taken for. The means are taken to be normal; regrets with a few very bad
    replications need many replications for that.

    A verdict is worse if it went down in the order PASS, NOT REFUTED, INCONCLUSIVE, FAIL. Cells that only one side
    knows, and cells that were run on other data, with other parameters or another effort, are listed but not compared.

    Returns:
      every comparison, those that are worse first; what could not be compared and why, in words.
    """
    cells, notes = {cell.label: cell for cell in now.cells}, []
    pairs: list[tuple[str, Estimate, Estimate]] = []
    rows: list[Row] = []
    for before in baseline.cells:
        after = cells.pop(before.label, None)
        if after is None:
            notes.append(f"{before.label}: in the baseline, but not in this run")
            continue
        notes += _not_compared(before, after)
        pairs += [(before.label, *estimates) for estimates in _pairs(before, after)]
        rows += _verdicts(before, after)
    notes += [f"{label}: new, not in the baseline" for label in cells]
    share = (1 - CONFIDENCE) / max(1, len(pairs))
    rows += [_row(label, first, second, share) for label, first, second in pairs]
    return sorted(rows, key=lambda row: not row["is_worse"]), notes


class Outcome(TypedDict):
    """Comparison with the baseline: its name in words, None where there is none; every row; and what was not compared."""

    baseline: str | None
    rows: list[Row]
    notes: list[str]


def told(place: Path, baseline: Baseline, now: Baseline) -> Outcome:
    """Compares present results with the baseline that lies at a place."""
    rows, notes = compare(baseline, now)
    return {"baseline": f"{place.name}, code {baseline.code[:12]}", "rows": rows, "notes": notes}


def tell(row: Row) -> str:
    """One row in words."""
    shown = [value if isinstance(value, str) else f"{value:.4g}" for value in (row["baseline"], row["now"])]
    words = f"{row['label']}: {row['quantity']} {shown[0]} -> {shown[1]}"
    if row["difference"] is not None:
        words += f", {row['difference']:+.4g} [{row['low']:+.4g}, {row['high']:+.4g}]"
    return f"{words}: {'worse than the baseline' if row['is_worse'] else 'not worse'}"


def _not_compared(before: CellFacts, after: CellFacts) -> list[str]:
    notes = []
    for what, old, new in (("regret", before.regret, after.regret), ("audit", before.audit, after.audit)):
        if old is None and new is not None:
            notes.append(f"{before.label}: {what}: new, not in the baseline")
        elif old is not None and new is None:
            notes.append(f"{before.label}: {what}: in the baseline, but the present code has no result to compare")
        elif old is not None and new is not None and old.setting != new.setting:
            notes.append(f"{before.label}: {what}: parameters, data or effort differ from the baseline: not compared")
    return notes


def _pairs(before: CellFacts, after: CellFacts) -> list[tuple[Estimate, Estimate]]:
    """Pairs of numbers that both sides have in the same setting."""
    pairs = []
    if before.regret is not None and after.regret is not None and before.regret.setting == after.regret.setting:
        pairs.append((before.regret.final, after.regret.final))
    if before.audit is not None and after.audit is not None and before.audit.setting == after.audit.setting:
        new = {estimate.quantity: estimate for estimate in after.audit.tightness}
        pairs += [(old, new[old.quantity]) for old in before.audit.tightness if old.quantity in new]
    return pairs


def _verdicts(before: CellFacts, after: CellFacts) -> list[Row]:
    """A row where the verdict got worse."""
    if before.audit is None or after.audit is None:
        return []
    old, new = before.audit.verdict, after.audit.verdict
    if _VERDICTS.index(new) >= _VERDICTS.index(old):
        return []
    return [Row(label=before.label, quantity="verdict", baseline=old, now=new, difference=None, low=None, high=None,
                is_worse=True)]  # fmt: skip


def _row(label: str, before: Estimate, after: Estimate, share: float) -> Row:
    difference = after.value - before.value
    variances = [estimate.standard_error**2 for estimate in (before, after)]
    half = 0.0
    if (total := math.fsum(variances)) > 0:
        freedom = total**2 / math.fsum(v**2 / e.freedom for v, e in zip(variances, (before, after), strict=True))
        half = -float(stdtrit(freedom, share / 2)) * math.sqrt(total)
    low, high = difference - half, difference + half
    least = _SAME * max(abs(before.value), abs(after.value))  # what rounding alone may do
    is_worse = low > least if before.quantity == REGRET else high < -least
    return Row(label=label, quantity=before.quantity, baseline=before.value, now=after.value, difference=difference,
               low=low, high=high, is_worse=is_worse)  # fmt: skip


def lines(outcome: Outcome | None) -> list[str]:
    """Lines of the terminal on the suite's gate; none where it did not run."""
    if outcome is None:
        return []
    if outcome["baseline"] is None:
        return [f"gate          {note}" for note in outcome["notes"]]
    n_worse = sum(row["is_worse"] for row in outcome["rows"])
    shown = [
        f"gate          {n_worse} of {len(outcome['rows'])} comparisons are worse than the baseline ({outcome['baseline']})"
    ]
    shown += [f"              {tell(row)}" for row in outcome["rows"] if row["is_worse"]]
    return shown + [f"              {note}" for note in outcome["notes"]]


def in_report(outcome: Outcome | None) -> Regressions | None:
    """The field `regressions` of a report's document, from what the suite's gate returned; None without a baseline."""
    if outcome is None or outcome["baseline"] is None:
        return None
    shown: list[Regression] = []
    for row in outcome["rows"]:
        text = "a worse verdict than the baseline's"
        if row["difference"] is not None:
            side = "above" if row["quantity"] == REGRET else "below"
            interval = f"[{row['low']:+.4g}, {row['high']:+.4g}]"
            text = f"difference {row['difference']:+.4g} {interval}; worse if all of the interval lies {side} 0"
        shown.append({"label": row["label"], "quantity": row["quantity"], "before": row["baseline"], "now": row["now"],
                      "is_worse": row["is_worse"], "text": text})  # fmt: skip
    return {"baseline": outcome["baseline"], "rows": shown}
