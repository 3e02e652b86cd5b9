"""The section of a leaderboard's page on many problems of one file: who learned anything, and win rates of all pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bandana.audits.reporting.blocks import Block, Column, figure_block, heading, paragraph, right, table_block
from bandana.audits.reporting.numbers import NONE, number
from bandana.flows.annexes.leaderboard import plots

if TYPE_CHECKING:
    from bandana.flows.annexes.leaderboard.document import Duel, WinRates

_RULES = (
    "On a problem the entry of smaller mean regret over the common replications wins; equal means are half a win of both. "
    "The interval is over problems, taken as independent: Clopper and Pearson's at 95 %, of each pair by itself. "
    "Shown: problems on which the difference is no chance of replications, by a one-sided paired t-test at 5 %, each by "
    "itself. A problem counts once all of its rows are finished."
)


def blocks(rates: Sequence[WinRates]) -> list[Block]:
    """Blocks of one file's win rates: learned, then matrices and pairs of each trust model.

    Args:
      rates: of one file, at least one.
    """
    finished, problems = rates[0]["finished"], rates[0]["problems"]
    shown: list[Block] = [paragraph(f"{finished} of {problems} problems are finished. {_RULES}"), _learned(rates)]
    for trust in dict.fromkeys(each["privacy_model"] for each in rates):
        own = [each for each in rates if each["privacy_model"] == trust and each["duels"]]
        if own:
            shown += [heading("Without privacy" if trust == "none" else f"Trust model: {trust}"), _figure(own), _pairs(own)]
    return shown


def level_of(rates: WinRates) -> str:
    """Words for the level of a matrix."""
    return "not private" if rates["mu"] is None else f"µ ≤ {number(rates['mu'])}"


def share_of(duel: Duel) -> str:
    """Share of wins with its interval, in percent."""
    if duel["share"] is None or duel["low"] is None or duel["high"] is None:
        return NONE
    return f"{100 * duel['share']:.0f} % ({100 * duel['low']:.0f} to {100 * duel['high']:.0f})"


def learned_rows(rates: Sequence[WinRates]) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of a table: each trust model, and on how many problems anybody learned at each level."""
    levels = dict.fromkeys(each["mu"] for each in rates if each["mu"] is not None)
    rows = []
    for trust in dict.fromkeys(each["privacy_model"] for each in rates):
        own = {each["mu"]: f"{each['learned']} of {each['finished']}" for each in rates if each["privacy_model"] == trust}
        rows.append([trust, *(own.get(level, own.get(None, NONE)) for level in levels)])
    return [f"µ ≤ {number(level)}" for level in levels], rows


def _learned(rates: Sequence[WinRates]) -> Block:
    heads, rows = learned_rows(rates)
    caption = (
        "Problems on which anybody learned anything: the best entry is shown to beat uniform play and the best constant "
        "action. None: without privacy."
    )
    columns: list[Column] = ["Trust", *(right(head) for head in heads)]
    return table_block(caption, columns, rows, narrow=True)


def _figure(rates: Sequence[WinRates]) -> Block:
    images = []
    for each in rates:
        words = "; ".join(f"{duel['first']} against {duel['second']}: {share_of(duel)}" for duel in each["duels"])
        images.append((plots.win_matrix(each["duels"]), f"Win rates, {each['privacy_model']}, {level_of(each)}. {words}."))
    return figure_block(
        f"win rates {rates[0]['file']} {rates[0]['privacy_model']}",
        "Percentage of problems on which the row's entry loses less than the column's, with intervals.",
        images,
        size="medium",
        titles=[level_of(each) for each in rates],
    )


def _pairs(rates: Sequence[WinRates]) -> Block:
    columns: list[Column] = ["Level", "First", "Second", right("First loses less"), right("Shown"), right("Shown worse")]
    rows: list[list[str]] = []
    for each in rates:
        known = {(duel["first"], duel["second"]): duel for duel in each["duels"]}
        done: set[tuple[str, str]] = set()
        for (first, second), duel in known.items():
            if (second, first) not in done:
                done.add((first, second))
                worse = known[second, first]["shown"]
                rows.append([level_of(each), first, second, share_of(duel), str(duel["shown"]), str(worse)])
    return table_block("Each pair once: share of problems, and problems on which a difference is shown.", columns, rows)
