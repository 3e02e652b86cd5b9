"""Strength of a promise: what its epsilon and delta mean for one person, apart from whether an audit found it kept.

A true promise can be weak. The thresholds are those of the literature, as `SOURCES` cites them; no epsilon
means anything without the unit of privacy, which the label shows beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from bandana.audits.documents.audit import Audit
from bandana.audits.documents.benchmark import BenchmarkCell
from bandana.audits.documents.fields import present
from bandana.audits.documents.report import Report
from bandana.audits.reporting.document import cells_of
from bandana.audits.reporting.numbers import PURE, number
from bandana.audits.summary import epsilon_of

STRONG_EPSILON, MODERATE_EPSILON = 1.0, 10.0
"""Largest epsilon of a strong and of a moderate promise (Ponomareva et al. 2023)."""
STRONG_EXPECTED, MODERATE_EXPECTED = 0.1, 1.0
"""Limits of the number of people times delta of a strong and a moderate promise (Dwork and Roth 2014; the 0.1 is ours)."""
SOURCES = (
    "Thresholds: ε at most 1 is strong and above 10 is weak (Ponomareva et al. 2023, How to DP-fy ML, section 5.2). δ must "
    "be below 1/n for n people (Dwork and Roth 2014, section 2.3): at δ = 1/n the promise allows that one person's whole "
    "record is published. For a strong promise n × δ must be at most 0.1. The public draft of NIST SP 800-226 (2023) "
    "reports a consensus that ε of at most 1 protects well in practice in most cases. It prefers Rényi, zero-concentrated "
    "or Gaussian parameters to (ε, δ). ε means nothing without its unit of privacy, and neither do these words."
)
"""Where the thresholds come from."""


HELD = ("PASS", "NOT REFUTED")
"""Verdicts that speak for a promise, or at least not against it."""
USER = "all records of one user"
"""The relation of a promise to a user."""


class Promise(NamedTuple):
    """One promise of a report.

    Attributes:
      label: of the audit or cell.
      epsilon: the larger of claimed and accounted at `delta`, in nats; None where there is no finite one.
      delta: 0 for pure differential privacy.
      verdict: of its audit; None where it was not audited.
      unit: what one record is.
      relation: which data sets are neighbors.
      is_undoable: whether private data are protected by noise that anybody with its seeds can subtract.
    """

    label: str
    epsilon: float | None
    delta: float
    verdict: str | None
    unit: str
    relation: str
    is_undoable: bool = False


class Strength(NamedTuple):
    """Strength of a promise.

    Attributes:
      word: strong, moderate, weak, not rated or refuted.
      tone: of its badge: good for a strong promise, bad for a refuted one, else quiet: a word and no alarm.
      reasons: why it is not stronger, in words; empty if it is strong.
    """

    word: str
    tone: str
    reasons: tuple[str, ...]


_TONES = {"strong": "good", "refuted": "bad"}
WORDS = ("refuted", "weak", "not rated", "moderate", "strong")
"""Every strength, the worst first."""


def promises(document: Report) -> Iterator[Promise]:
    """Every promise of a report, each to one run: those that were audited, then those of private cells that were not."""
    cells, audited = private_cells(document), set()
    undoable = {cell["label"] for cell in on_private_data(document) if (cell["noise"] or "").startswith("reproducible")}
    for audit in document["audits"]:
        audited.add(audit["label"])
        yield promise_of(audit)._replace(is_undoable=audit["label"] in undoable)
    for cell in cells:
        label, made = cell["label"], present(cell["promise"])
        if label not in audited:
            delta = 0.0 if made["is_pure"] else made["delta"]
            yield Promise(label, made["epsilon"], delta, None, made["unit"], made["relation"], label in undoable)


def private_cells(document: Report) -> list[BenchmarkCell]:
    """Cells that promise privacy."""
    return [cell for cell in cells_of(document) if cell["promise"] is not None]


def on_private_data(document: Report) -> list[BenchmarkCell]:
    """Cells that promise privacy and read private data."""
    private = {each["label"] for each in document["environments"] if each["data"] == "private"}
    return [cell for cell in private_cells(document) if cell["environment"] in private]


def noise_sources(document: Report) -> list[str]:
    """Sources of the noise of all runs; of audits, which replay drawn data, where there is no run."""
    runs = [cell["noise"] for cell in cells_of(document) if cell["noise"]]
    audits = [audit["accountant"]["noise_source"] for audit in document["audits"] if audit["accountant"]["noise_source"]]
    return list(dict.fromkeys(runs or audits))


def is_secure(document: Report) -> bool:
    """True if all noise of a report's runs is secure: no seed of it exists."""
    sources = noise_sources(document)
    return bool(sources) and all(source.startswith("secure") for source in sources)


def epsilon_at(cell: BenchmarkCell) -> str:
    """Text of the claimed epsilon of a cell at the report's delta; a dash for a cell that promises nothing."""
    return number(None if cell["promise"] is None else cell["promise"]["epsilon"])


def composed(cells: Sequence[BenchmarkCell]) -> float | None:
    """The mu that all runs of these cells compose to at most, if each could read the same record; None: no finite one."""
    squares = [cell["replications"] * cell["mu"] ** 2 for cell in cells if cell["mu"] is not None]
    return math.sqrt(math.fsum(squares)) if len(squares) == len(cells) else None


def totals(document: Report) -> Iterator[Promise]:
    """Sums of all runs on private data: by their budget book, or else those of the report on each environment."""
    booked = {book["environment"] for book in document["books"]}
    for book in document["books"]:
        yield Promise(f"all runs in the budget book {book['name']}", book["spent"], book["delta"] or 0.0, None, "", "")
    cells = [cell for cell in on_private_data(document) if cell["environment"] not in booked]
    for environment in dict.fromkeys(cell["environment"] for cell in cells):
        here = [cell for cell in cells if cell["environment"] == environment]
        if sum(cell["replications"] for cell in here) > 1:
            mu, delta = composed(here), present(here[0]["promise"])["delta"]
            yield Promise(f"all runs on {environment}", None if mu is None else epsilon_of(mu, delta), delta, None, "", "")


def promise_of(audit: Audit) -> Promise:
    """The promise of one audit: its source claims it, and its ledger may need more."""
    is_pure = audit["main"]["quantity"] == PURE
    three = audit["main"] if is_pure else audit["epsilon"]
    claimed, accounted = three["claimed"], three["accounted"]
    epsilon = claimed if claimed is None or accounted is None else max(claimed, accounted)
    delta = 0.0 if is_pure else audit["delta"]
    return Promise(audit["label"], epsilon, delta, audit["verdict"], audit["unit"], audit["relation"])


def strength_of(promise: Promise, people: int | None) -> Strength:
    """Rates one promise.

    Args:
      promise: of a report.
      people: in the data; None if nobody knows.
    """
    ratings = [_by_epsilon(promise.epsilon), _by_delta(promise.delta, people)]
    if promise.is_undoable:
        ratings.append(("moderate", "anybody with the seeds can subtract its noise"))
    if promise.verdict == "FAIL":
        ratings.append(("refuted", "the audit refutes the claim, so that nothing is promised"))
    word = next(word for word in WORDS if any(word == each for each, _ in ratings))
    return Strength(word, _TONES.get(word, "quiet"), tuple(why for each, why in ratings if each != "strong"))


def weakest(made: Iterable[Promise], people: int | None) -> tuple[Promise, Strength] | None:
    """The weakest of some promises with its strength; None of none."""
    rated = [(promise, strength_of(promise, people)) for promise in made]

    def order(each: tuple[Promise, Strength]) -> tuple[int, float]:
        epsilon = each[0].epsilon
        return WORDS.index(each[1].word), -math.inf if epsilon is None else -epsilon

    return min(rated, key=order, default=None)


def of_all_runs(document: Report) -> str:
    """Strength of all runs on private data together, in a sentence; empty where nothing is added up."""
    rated = weakest(totals(document), document["people"]["count"])
    if rated is None:
        return ""
    total, strength = rated
    return f"A{total.label[1:]}: {strength.word}{': ' + '; '.join(strength.reasons) if strength.reasons else ''}."


def reason_of(promise: Promise, people: int | None) -> str:
    """Strength of a promise with its reason, in words."""
    rated = strength_of(promise, people)
    if rated.word == "refuted":
        return rated.reasons[-1]
    kept = f"ε is at most {number(STRONG_EPSILON)}" + (", n × δ at most 0.1" if promise.delta else "")
    return "; ".join(rated.reasons) or kept


def _by_epsilon(epsilon: float | None) -> tuple[str, str]:
    if epsilon is None:
        return "weak", "no finite ε"
    if epsilon <= STRONG_EPSILON * (1 + 1e-9):
        return "strong", ""
    limit, word = (STRONG_EPSILON, "moderate") if epsilon <= MODERATE_EPSILON else (MODERATE_EPSILON, "weak")
    return word, f"ε = {number(epsilon)} exceeds {number(limit)}"


def _by_delta(delta: float, people: int | None) -> tuple[str, str]:
    if delta == 0:
        return "strong", ""
    if people is None:
        # A data set of two people is the smallest that has a neighbor.
        return ("weak", f"δ = {number(delta)}") if delta >= 0.5 else ("not rated", "the number of people is not known")
    expected = delta * people
    product = f"n × δ = {number(expected)}"
    if expected >= MODERATE_EXPECTED * (1 - 1e-9):
        return "weak", f"{product} is not below 1"
    return ("strong", "") if expected <= STRONG_EXPECTED * (1 + 1e-9) else ("moderate", f"{product} exceeds 0.1")


def odds(epsilon: float | None) -> str:
    """Largest odds that even odds about one record become, in words, except with probability delta.

    >>> odds(1.2), odds(20.0), odds(None)
    ('3.32 : 1', '4.852 × 10⁸ : 1', 'no limit')
    """
    if epsilon is None or epsilon > 700:
        return "no limit"
    return f"{number(math.exp(epsilon))} : 1"


def right_guesses(epsilon: float | None, delta: float) -> str:
    """Share of right guesses about one record between two equally likely values, at most: (exp(ε) + δ) / (1 + exp(ε)).

    The total variation of the two laws is at most (exp(ε) - 1 + 2δ) / (exp(ε) + 1) (Kairouz, Oh and Viswanath 2017).

    >>> right_guesses(0.0, 0.0), right_guesses(1.2, 1e-5), right_guesses(20.0, 0.0), right_guesses(1.0, 0.5)
    ('50 %', '76.9 %', 'above 99.9 %', '86.6 %')
    """
    if epsilon is None:
        return "100 %"
    small = math.exp(-epsilon)
    share = (1 + delta * small) / (1 + small)
    return "above 99.9 %" if share > 0.999 else f"{number(round(100 * share, 1))} %"
