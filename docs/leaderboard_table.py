"""The winners on docs/leaderboard.md: `python docs/leaderboard_table.py bandana_data [quick]`.

The data folder must hold the whole leaderboard, as `bandana leaderboard` leaves it, or with `quick` its quick form. The
table of defaults stands between `<!-- winners -->` and `<!-- end -->`, that of tuned rows after `<!-- tuned -->`, and the
values of families after `<!-- families -->`. Contests within each kind of guarantee are in the file beside the page.
"""

from __future__ import annotations

import csv
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
GUARANTEES = PAGE.with_name("leaderboard-guarantees.csv")
_PLACE = re.compile(r"(<!-- (winners|tuned|families) -->\n).*?(<!-- end -->)", re.S)


def winners(document: Any, column: str = "defaults") -> str:
    """The best private row of every problem, trust model and level in a column, as Markdown.

    Args:
      document: a valid leaderboard.
      column: defaults or tuned; of tuned rows only contests that somebody has won.
    """
    heads = _heads(document)
    rows = contests(document, None, column)
    if column == "tuned":
        rows = [row for row in rows if any(cell and not cell.startswith("nobody") for cell in row[2:5])]
    first, *rest = (f"| {' | '.join(row)} |" for row in [heads, *rows])
    return "\n".join([first, "|---" * len(heads) + "|", *rest])


def contests(document: Any, guarantee: str | None, column: str = "defaults") -> list[list[str]]:
    """The rows of a table of winners.

    Args:
      document: a valid leaderboard.
      guarantee: kind of guarantee of all that play; None: any.
      column: defaults or tuned.
    """
    rows_of_table = []
    for problem in document["problems"]:
        rows = {row["label"]: row for row in problem["rows"]}
        for trust in dict.fromkeys(best["privacy_model"] for best in problem["best"]):
            best: dict[float, Any] = {**contests_of(problem, trust, guarantee, column)}
            if not best:
                continue
            measure = "" if problem["measure"] == "regret" else f", {MEASURES[problem['measure']].head.lower()}"
            cells = [_winner(best.get(level), rows) for level in document["levels"]]
            unlearned = [number(float(rows[name]["mean"])) if name in rows else "" for name in (UNIFORM, CONSTANT)]
            rows_of_table.append([f"`{problem['name']}`{measure}", trust, *cells, *unlearned])
    return rows_of_table


def _heads(document: Any) -> list[str]:
    return ["problem", "protection", *(f"µ ≤ {number(level)}" for level in document["levels"]), UNIFORM, CONSTANT]


def write_guarantees(document: Any) -> None:
    """The winners within each kind of guarantee, as CSV."""
    with GUARANTEES.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["guarantee", *_heads(document)])
        for kind in ("pure", "concentrated", "approximate"):
            rows.writerows([kind, row[0].replace("`", ""), *row[1:]] for row in contests(document, kind))


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
    name = family_of(rows[best["label"]]).replace(f" {best['privacy_model']}", "")  # which stands in the row
    first = f"{name} {number(float(best['mean']))}"
    if best["not_beaten"]:
        return f"nobody ({first})"
    others = len(best["best_set"]) - 1
    level = f" (µ = {number(best['mu_claimed'])})" if best["mu_claimed"] < best["mu"] / 2 else ""
    return f"{first}{level}" + (f" +{others}/{best['candidates'] - 1}" if others else "")


def _size(document: dict[str, Any]) -> str:
    rows = [row for problem in document["problems"] for row in problem["rows"]]
    n_problems, n_private = len(document["problems"]), sum(row["role"] == "private" for row in rows)
    form = document["suite"].rpartition(", ")[2]
    return f"Version {document['version']}: {n_problems} problems, {len(rows)} rows, {n_private} of them private; {form}."


def filled(page: str, document: dict[str, Any]) -> str:
    """The page with today's winners."""
    texts = {
        "winners": f"{winners(document)}\n\n{_size(document)}",
        "tuned": f"{winners(document, column='tuned')}\n\n{agreement(document['columns'])}",
        "families": families(json.loads(FAMILIES.read_text(encoding="utf-8"))["families"]),
    }
    return _PLACE.sub(lambda match: f"{match.group(1)}{texts[match.group(2)]}\n{match.group(3)}", page)


if __name__ == "__main__":
    place = Path(sys.argv[1]) / "leaderboard" / f"{sys.argv[2] if sys.argv[2:] else 'whole'}.json"
    board = json.loads(place.read_text(encoding="utf-8"))
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), board), encoding="utf-8")
    write_guarantees(board)
