"""A suite's table as LaTeX: final regret with its interval, and privacy claimed, accounted and measured."""

from __future__ import annotations

import math
import string
from typing import TYPE_CHECKING

from bandana.flows.annexes.publication.latex import escaped

if TYPE_CHECKING:
    import pandas as pd

_PRIVACY = {"epsilon_claimed": "claimed", "epsilon_accounted": "accounted", "epsilon_measured": "measured"}
_END = r" \\"
_ROUNDING = 1e-12


def table(frame: pd.DataFrame, heading: str) -> str:
    r"""LaTeX of a table with the rules of `booktabs`, to be read with `\input`.

    Cells are grouped by environment where there are several. Regrets are rounded to two digits of their interval's half
    width. Columns that no cell fills are left out. Cautions are footnotes of `threeparttable`.

    Args:
      frame: of `Result.frame`; `cell_label`, where there is one, names cells.
      heading: what the table shows, in one line; it becomes a comment.
    """
    deltas = sorted(set(frame.delta.dropna()))
    privacy = {name: word for name, word in _PRIVACY.items() if frame[name].notna().any()}
    has_interval, has_verdict = (frame.replications > 1).any(), frame.verdict.notna().any()
    heads = ["Algorithm", "Regret", *([r"95\,\% interval"] if has_interval else []), *privacy.values()]
    heads += ["Audit"] if has_verdict else []
    columns = "l" + "r" + ("r" if has_interval else "") + "r" * len(privacy) + ("l" if has_verdict else "")
    lines, notes = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule"], dict[str, str]()
    if privacy:
        first = columns.index("r") + 2 + has_interval
        over = rf"\multicolumn{{{len(privacy)}}}{{c}}{{$\varepsilon$ at $\delta = {_power(deltas[0])}$}}"
        lines += [" & " * (first - 1) + over + (" &" if has_verdict else "") + _END]
        lines += [rf"\cmidrule(lr){{{first}-{first + len(privacy) - 1}}}"]
    lines += [" & ".join(heads) + _END]
    for environment, group in frame.groupby("environment", sort=False):
        lines.append(r"\midrule")
        if frame.environment.nunique() > 1:
            lines += [rf"\multicolumn{{{len(columns)}}}{{l}}{{\emph{{{escaped(str(environment))}}}}}{_END}"]
        for row in group.to_dict("records"):
            name = escaped(str(row.get("cell_label") or row["cell"]).removesuffix(f" on {environment}"))
            name = f"{{{name}}}" if name[:1] in ("[", "*") else name  # the end of the row above would take it for an option
            regret = _regret(row["regret"], row["regret_low"], row["regret_high"], has_interval)
            if isinstance(caution := row.get("caution"), str):
                place = notes.setdefault(caution, string.ascii_lowercase[len(notes) % 26])
                regret[-1 if regret[-1] else 0] += rf"\tnote{{{place}}}"
            values = [name, *regret, *(_number(row[column]) for column in privacy)]
            verdict = escaped(row["verdict"]) if isinstance(row["verdict"], str) else "--"
            lines.append(" & ".join([*values, *([verdict] if has_verdict else [])]) + _END)
    lines += [r"\bottomrule", r"\end{tabular}"]
    if notes:
        items = [rf"\item[{place}] {escaped(caution)}" for caution, place in notes.items()]
        below = [r"\begin{tablenotes}\footnotesize", *items, r"\end{tablenotes}", r"\end{threeparttable}"]
        lines = [r"\begin{threeparttable}", *lines, *below]
    packages = "booktabs" + (",threeparttable" if notes else "")
    return "\n".join([f"% {heading}", rf"% Needs \usepackage{{{packages}}}.", *lines, ""])


def _regret(mean: float, low: float, high: float, has_interval: bool) -> list[str]:
    if math.isnan(mean):
        return ["withheld", *([""] if has_interval else [])]
    half = (high - low) / 2
    if half <= _ROUNDING * abs(mean):  # sums of equal numbers differ in their last bits
        half = 0.0
    digits = max(0, 1 - math.floor(math.log10(half))) if half > 0 else max(0, 3 - math.floor(math.log10(abs(mean) or 1)))
    texts = [_fixed(value, digits) for value in (mean, low, high)]
    interval = f"[{texts[1]}, {texts[2]}]" if half > 0 else "--"
    return [texts[0], *([interval] if has_interval else [])]


def _fixed(value: float, digits: int) -> str:
    text = f"{abs(value):,.{digits}f}".replace(",", "{,}")
    return f"$-{text}$" if value < 0 and float(f"{value:.{digits}f}") else f"${text}$"


def _number(value: float | None) -> str:
    if value is None or math.isnan(value):
        return "--"
    return r"$\infty$" if math.isinf(value) else f"{value:.4g}"


def _power(value: float) -> str:
    mantissa, exponent = f"{value:.3e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".")
    power = f"10^{{{int(exponent)}}}"
    return power if mantissa == "1" else rf"{mantissa} \times {power}"
