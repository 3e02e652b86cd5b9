"""Which algorithm is best where, by the numbers of a leaderboard that lies in the data folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bandana.audits.reporting.document import validate
from bandana.audits.reporting.numbers import NONE, number
from bandana.flows.running.settings import DataFolder, data_root

_COMMAND = "bandana leaderboard --quick"
_MEASURES = {"regret": "", "rounds": " (rounds to stop)", "errors": " (share of wrong answers)"}


def latest(data: Path | None = None) -> dict[str, Any] | None:
    """The leaderboard of a data folder, the whole form where there is one; None where none can be read."""
    for form in ("whole", "quick"):
        try:
            text = DataFolder(data_root(data)).leaderboard(form, "json").read_text(encoding="utf-8")
            document: dict[str, Any] = json.loads(text)
            validate(document)
        except (OSError, ValueError):
            continue
        return document
    return None


def lines(document: dict[str, Any]) -> list[str]:
    """The best private row of each problem and trust model at each level, a line a problem and trust model."""
    said = "Best by mean regret, or by what stands behind a problem's name"
    found = [f"{said}; {document['title']}, {document['suite']}; ~ marks a tie with another row:"]
    for problem in document["problems"]:
        name = problem["name"] + _MEASURES[problem["measure"]]
        for trust in dict.fromkeys(best["privacy_model"] for best in problem["best"]):
            own = [best for best in problem["best"] if best["privacy_model"] == trust]
            told = "; ".join(f"mu <= {best['mu']:g}: {_winner(best)}" for best in own)
            found.append(f"  {name}, {trust}: {told}")
    return found


def _winner(best: dict[str, Any]) -> str:
    if best["label"] is None:
        return NONE
    return f"{best['label']}{' ~' if best['tied'] else ''} ({number(float(best['mean']))})"


def hint() -> list[str]:
    """What to type for a leaderboard, where there is none."""
    return [f"No leaderboard in {data_root()} yet: `{_COMMAND}` says which algorithm is best at which privacy level."]
