"""The numbers and the picture on docs/real-tables.md: `python docs/real_tables.py real_tables_data`.

The data folder must hold the whole form of `experiments/real-tables`, as `bandana leaderboard experiments/real-tables
--no-audit --data real_tables_data` leaves it. Tables stand between `<!-- win rates -->` and `<!-- end -->`; the file beside
the page also has the pairs with reference rows.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from pathlib import Path
from typing import Any

from bandana.flows.annexes.leaderboard import plots
from bandana.flows.annexes.leaderboard.win_rate_sections import learned_rows, level_of, share_of
from bandana.flows.problems.environment import CONSTANT, UNIFORM

PAGE = Path(__file__).parent / "real-tables.md"
PICTURE = PAGE.parent / "images" / "real-tables.svg"
SHOWN = ("joint", 1)
"""Trust model and level of the picture."""
PAIRS = PAGE.with_name("real-tables-pairs.csv")
HEADS = ("protection", "level", "first", "second", "first loses less", "first shown better", "second shown better")
_PLACE = re.compile(r"(<!-- win rates -->\n).*?(<!-- end -->)", re.S)


def tables(document: dict[str, Any]) -> str:
    """Who learned anything, and win rates of all pairs of algorithms, as Markdown; the file beside it has the pairs."""
    rates = document["win_rates"]
    finished, problems = rates[0]["finished"], rates[0]["problems"]
    rows = [row for problem in document["problems"] if not problem["missing"] for row in problem["rows"]]
    heads, learned = learned_rows(rates)
    lines = [
        f"Measured on {finished} of {problems} tables, {len(rows)} rows; version {document['version']} of the folder.", "",
        "Tables on which anybody learned anything:", "",
        f"| protection | {' | '.join(heads)} |", "|---|" + "---|" * len(heads),
        *(f"| {' | '.join(row)} |" for row in learned), "",
        "The percentage of tables on which the row's entry loses less than the column's, with its interval. [A CSV "
        f"file]({PAIRS.name}) also has the pairs with uniform play and the best constant action, and on how many tables "
        "each of a pair is shown to be better.", "",
    ]  # fmt: skip
    return "\n".join([*lines, *(line for each in rates for line in matrix(each))]).rstrip()


def matrix(rates: dict[str, Any]) -> list[str]:
    """Win rates of a trust model and level, as lines of Markdown; none where one entry plays alone."""
    shares = {(duel["first"], duel["second"]): share_of(duel) for duel in rates["duels"]}
    names = [name for name in dict.fromkeys(first for first, _ in shares) if name not in (UNIFORM, CONSTANT)]
    if len(names) < 2:
        return []
    heads = [name.replace(f" {rates['privacy_model']}", "").replace(" non-private", "") for name in names]
    cells = [[shares.get((row, column), "").replace(" %", "").replace(" to ", "–") for column in names] for row in names]
    return [
        f"| {rates['privacy_model']}, {level_of(rates)} | {' | '.join(heads)} |",
        "|---" * (len(names) + 1) + "|",
        *(f"| `{head}` | {' | '.join(row)} |" for head, row in zip(heads, cells, strict=True)), "",
    ]  # fmt: skip


def pairs(document: dict[str, Any]) -> list[list[str]]:
    """Each pair once, in the columns of `HEADS`."""
    rows = []
    for each in document["win_rates"]:
        known = {(duel["first"], duel["second"]): duel for duel in each["duels"]}
        for place, (pair, duel) in enumerate(known.items()):
            if (pair[1], pair[0]) not in [*known][:place]:
                shown = [share_of(duel), str(duel["shown"]), str(known[pair[1], pair[0]]["shown"])]
                rows.append([each["privacy_model"], level_of(each), *pair, *shown])
    return rows


def picture(document: dict[str, Any]) -> str:
    """SVG text of one matrix."""
    return next(
        plots.win_matrix(each["duels"]) for each in document["win_rates"] if (each["privacy_model"], each["mu"]) == SHOWN
    )


if __name__ == "__main__":
    place = Path(sys.argv[1]) / "leaderboard" / "whole.json"
    board = json.loads(place.read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(_PLACE.sub(lambda match: f"{match[1]}{tables(board)}\n{match[2]}", page), encoding="utf-8")
    with PAIRS.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([HEADS, *pairs(board)])
    PICTURE.write_text(picture(board), encoding="utf-8")
