"""Win rates over the problems of one file: on how many of them an entry loses less than another, or learns anything.

One problem says who is best on it; many problems, such as real tables, say who is better on a problem that nobody has looked
at. All rules of a contest on one problem hold here too (`bandana.flows.annexes.leaderboard.contest`): each entry plays once
within a level, and replications are paired.

- **A win.** On a problem the entry of smaller mean over the common replications wins. Equal means are a tie, half a win of
  both: share = (wins + ties / 2) / problems.
- **The interval** of a share is over problems, Clopper and Pearson's (1934) at 95 %: its lower end that of the wins, its
  upper end that of wins and ties. It takes problems for independent draws; it holds for one pair, not for all at once.
- **Shown.** Problems on which the difference is no chance of replications: one-sided paired t-test at 5 %, each by itself,
  so that of 41 problems with no difference about two are shown.
- **Learned.** Problems whose contest has a winner: its entry of least mean is shown to beat uniform play and the best
  constant action, at 5 % divided by the number of entries.

A problem counts once all of its rows are finished, so that no result chooses which problems count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import TYPE_CHECKING

from scipy.stats import binomtest

from bandana.algorithms.protocol import FloatArray
from bandana.audits.reporting.intervals import p_values
from bandana.flows.annexes.leaderboard.contest import FAILURE, UNLEARNED, contest, paired, within
from bandana.flows.annexes.leaderboard.measures import measured
from bandana.flows.annexes.leaderboard.page import family_of
from bandana.flows.results.summaries import summarize_cell
from bandana.flows.spec.aims import Aim

if TYPE_CHECKING:
    from bandana.flows.annexes.leaderboard import document as documents
    from bandana.flows.annexes.leaderboard.benchmark_folder import Benchmark, Problem
    from bandana.flows.annexes.leaderboard.document import Duel, Row, WinRates
    from bandana.flows.folder.store import Store

Losses = Mapping[str, FloatArray]
"""Entry -> (n_reps,) losses on one problem, paired by replication; reference rows among them."""
_CONFIDENCE = 0.95


def win_rates(benchmark: Benchmark, shown: Sequence[documents.Problem], store: Store) -> list[WinRates]:
    """Win rates of each file of several problems: first without privacy, then of each trust model and level.

    Args:
      benchmark: what was played.
      shown: its problems in the document, in the same order.
      store: results.
    """
    files: dict[str, list[tuple[Problem, documents.Problem]]] = {}
    for problem, of_page in zip(benchmark.problems, shown, strict=True):
        if problem.aim is Aim.REGRET:
            files.setdefault(problem.file, []).append((problem, of_page))
    rates: list[WinRates] = []
    for file, group in files.items():
        whole = [(of_page["rows"], _values(problem, store)) for problem, of_page in group if not of_page["missing"]]
        if len(group) < 2 or not whole:
            continue
        trusts = dict.fromkeys(row["privacy_model"] for rows, _ in whole for row in rows if row["role"] == "private")
        choices: list[tuple[str, float | None]] = [("none", None)]
        choices += [(trust, level) for trust in trusts for level in benchmark.levels]
        for trust, level in choices:
            losses = [_played(rows, values, trust, level) for rows, values in whole]
            rates.append(
                {
                    "file": file, "privacy_model": trust, "mu": level, "problems": len(group), "finished": len(whole),
                    "learned": sum(has_learned(each) for each in losses), "duels": duels(losses),
                }
            )  # fmt: skip
    return rates


def duels(losses: Sequence[Losses]) -> list[Duel]:
    """All ordered pairs of entries, of which one at least is no reference row; see the module's text.

    Args:
      losses: of each problem. A pair is compared on the problems that both play.
    """
    names = sorted({name for each in losses for name in each}, key=lambda name: (name in UNLEARNED, name))
    pairs = [pair for pair in permutations(names, 2) if not set(pair) <= set(UNLEARNED)]
    return [_duel(first, second, losses) for first, second in pairs]


def _duel(first: str, second: str, losses: Sequence[Losses]) -> Duel:
    differences = [paired(each[first], each[second]) for each in losses if first in each and second in each]
    means = [float(each.mean()) for each in differences]
    n, wins, ties = len(means), sum(mean < 0 for mean in means), sum(mean == 0 for mean in means)
    ends = [binomtest(k, n).proportion_ci(_CONFIDENCE, "exact") if n else None for k in (wins, wins + ties)]
    return {
        "first": first,
        "second": second,
        "problems": n,
        "wins": wins,
        "ties": ties,
        "shown": sum(float(p_values(each)) <= FAILURE for each in differences),
        "share": (wins + ties / 2) / n if n else None,
        "low": float(ends[0].low) if ends[0] else None,
        "high": float(ends[1].high) if ends[1] else None,
    }


def has_learned(losses: Losses) -> bool:
    """True if the contest of a problem's entries has a winner, which beats the reference rows."""
    entries = {name: values for name, values in losses.items() if name not in UNLEARNED}
    references = {name: values for name, values in losses.items() if name in UNLEARNED}
    return bool(entries) and not contest(entries, references).not_beaten


def _values(problem: Problem, store: Store) -> dict[str, FloatArray]:
    """Label -> (n_reps,) losses of each row."""
    known = ((cell.name, measured(problem.aim, cell, summarize_cell(cell, store))) for cell in problem.plan.played)
    return {label: of_cell.values for label, of_cell in known if of_cell is not None}


def _played(rows: Sequence[Row], values: Losses, trust: str, level: float | None) -> Losses:
    """Losses of what plays in one matrix, by the names of entries without their levels."""
    able = [row for row in rows if row["role"] == "non-private"] if level is None else within(rows, level, trust)
    references = [row for row in rows if row["label"] in UNLEARNED]
    return {family_of(row): values[row["label"]] for row in [*able, *references]}
