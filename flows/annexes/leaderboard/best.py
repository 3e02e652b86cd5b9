"""Best algorithm on each problem, by the numbers of a leaderboard that lies in the data folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from bandana.flows.folder.settings import DataFolder, data_root

if TYPE_CHECKING:
    from bandana.flows.annexes.leaderboard.document import Best, Leaderboard

_COMMAND = "bandana leaderboard --quick"
_MEASURES = {"regret": "", "rounds": " (rounds to stop)", "errors": " (share of wrong answers)"}


def latest() -> Leaderboard | None:
    """The leaderboard of the data folder, the whole form where there is one; None where none can be read."""
    for form in ("whole", "quick"):
        try:
            text = (place_of(DataFolder(data_root())) / f"{form}.json").read_text(encoding="utf-8")
            document: Leaderboard = json.loads(text)
            from bandana.audits.reporting.document import validate
            from bandana.flows.annexes.leaderboard.document import LEADERBOARD

            validate(document)
        except (OSError, ValueError):
            continue
        if document["schema"] == LEADERBOARD.schema:
            return document
    return None


def place_of(folder: DataFolder) -> Path:
    """The folder of leaderboards in a data folder, whose files are named by their form, quick or whole."""
    return folder.root / "leaderboard"


def lines(document: Leaderboard) -> list[str]:
    """The best private row of each problem and trust model at each level, a line a problem and trust model."""
    from bandana.flows.annexes.leaderboard.page import agreement, contests_of, named

    head = "Best by mean regret, or by what stands behind a problem's name"
    lines = [f"{head}; {document['title']}, {document['suite']}; +k: of k more none is shown to be worse:"]
    for problem in named(document)["problems"]:
        name = problem["name"] + _MEASURES[problem["measure"]]
        for trust in dict.fromkeys(best["privacy_model"] for best in problem["best"]):
            own = contests_of(problem, trust, None, "defaults").values()
            winners = "; ".join(f"mu <= {best['mu']:g}: {_winner(best)}" for best in own)
            lines.append(f"  {name}, {trust}: {winners}")
    return [*lines, agreement(document["columns"])] if document["columns"]["contests"] else lines


def _winner(best: Best) -> str:
    from bandana.audits.documents.fields import present
    from bandana.audits.reporting.numbers import NONE, number

    if best["label"] is None:
        return NONE
    if best["not_beaten"]:
        return f"nobody beats {' and '.join(best['not_beaten'])}"
    more = len(best["best_set"]) - 1
    return f"{best['label']}{f' +{more}' if more else ''} ({number(float(present(best['mean'])))})"


def latest_lines() -> list[str]:
    """The best of the latest leaderboard, or the command that makes one."""
    if (board := latest()) is not None:
        return lines(board)
    return [f"No leaderboard in {data_root()} yet: `{_COMMAND}` says which algorithm is best at which privacy level."]
