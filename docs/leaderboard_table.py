"""The winners on docs/leaderboard.md: `python docs/leaderboard_table.py bandana_data [quick]`.

The data folder must hold the whole leaderboard, as `bandana leaderboard` leaves it, or with `quick` its quick form. The
table of defaults stands between `<!-- winners -->` and `<!-- end -->`, that of tuned rows after `<!-- tuned -->`, those of
each kind of guarantee after `<!-- guarantees -->`, and the values of families after `<!-- families -->`.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from bandana.audits.reporting.numbers import number
from bandana.flows.annexes.leaderboard.page import MEASURES, agreement, contests_of, family_of
from bandana.flows.problems.environment import CONSTANT, UNIFORM

PAGE = Path(__file__).parent / "leaderboard.md"
FAMILIES = Path(__file__).parents[1] / "experiments" / "benchmark" / "defaults.json"
_PLACE = re.compile(r"(<!-- (winners|tuned|guarantees|families) -->\n).*?(<!-- end -->)", re.S)


def winners(document: Any, guarantee: str | None = None, column: str = "defaults") -> str:
    """The best private row of every problem, trust model and level in a column, as Markdown.

    Args:
      document: a valid leaderboard.
      guarantee: kind of guarantee of all that play; None: any.
      column: defaults or tuned.
    """
    levels = document["levels"]
    heads = " | ".join(f"µ ≤ {number(level)}" for level in levels)
    lines = [f"| problem | protection | {heads} | {UNIFORM} | {CONSTANT} |", "|---|---|" + "---|" * (len(levels) + 2)]
    for problem in document["problems"]:
        rows = {row["label"]: row for row in problem["rows"]}
        for trust in dict.fromkeys(best["privacy_model"] for best in problem["best"]):
            best: dict[float, Any] = {**contests_of(problem, trust, guarantee, column)}
            if not best:
                continue
            cells = " | ".join(_winner(best.get(level), rows) for level in levels)
            measure = "" if problem["measure"] == "regret" else f", {MEASURES[problem['measure']].head.lower()}"
            unlearned = " | ".join(number(float(rows[name]["mean"])) if name in rows else "" for name in (UNIFORM, CONSTANT))
            lines.append(f"| `{problem['name']}`{measure} | {trust} | {cells} | {unlearned} |")
    return "\n".join(lines)


def families(values: dict[str, Any]) -> str:
    """The factor of each family and its regret with each, as Markdown."""
    factors = [*next(iter(values.values()))["regret"]]
    heads = " | ".join(f"at {factor}" for factor in factors)
    lines = [f"| family | factor | {heads} |", "|---|--:|" + "--:|" * len(factors)]
    for family, value in values.items():
        tried = " | ".join(number(value["regret"][factor]) for factor in factors)
        lines.append(f"| `{family}` | {value['chosen']:g} | {tried} |")
    return "\n".join(lines)


def _winner(best: dict[str, Any] | None, rows: dict[str, Any]) -> str:
    if best is None or best["label"] is None:
        return ""
    first = f"{family_of(rows[best['label']])} {number(float(best['mean']))}"
    if best["not_beaten"]:
        return f"nobody ({first})"
    others = len(best["best_set"]) - 1
    level = f" (µ = {number(best['mu_claimed'])})" if best["mu_claimed"] < best["mu"] / 2 else ""
    return f"{first}{level}" + (f", or {others} of {best['candidates'] - 1} others" if others else "")


def _size(document: dict[str, Any]) -> str:
    rows = [row for problem in document["problems"] for row in problem["rows"]]
    n_problems, n_private = len(document["problems"]), sum(row["role"] == "private" for row in rows)
    form = document["suite"].rpartition(", ")[2]
    return f"Version {document['version']}: {n_problems} problems, {len(rows)} rows, {n_private} of them private; {form}."


def filled(page: str, document: dict[str, Any]) -> str:
    """The page with today's winners."""
    kinds = [(kind, winners(document, kind)) for kind in ("pure", "concentrated", "approximate")]
    texts = {
        "winners": f"{winners(document)}\n\n{_size(document)}",
        "tuned": f"{winners(document, column='tuned')}\n\n{agreement(document['columns'])}",
        "guarantees": "\n\n".join(f"**{kind.capitalize()}**\n\n{text}" for kind, text in kinds),
        "families": families(json.loads(FAMILIES.read_text(encoding="utf-8"))["families"]),
    }
    return _PLACE.sub(lambda match: f"{match.group(1)}{texts[match.group(2)]}\n{match.group(3)}", page)


if __name__ == "__main__":
    place = Path(sys.argv[1]) / "leaderboard" / f"{sys.argv[2] if sys.argv[2:] else 'whole'}.json"
    PAGE.write_text(
        filled(PAGE.read_text(encoding="utf-8"), json.loads(place.read_text(encoding="utf-8"))), encoding="utf-8"
    )
