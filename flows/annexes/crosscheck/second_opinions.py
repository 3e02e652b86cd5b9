"""Asks other people's accountants, dp-accounting and opacus, what they think of our ledgers, and says whether they agree.

A ledger enters as the events on its worst record. Each opinion is an interval in which our epsilon must lie:

  exact      the library computes the same number: within 1e-9 of it, relative;
  upper      the library bounds from above: ours is at most that, plus 1e-9;
  lower      the library bounds from below (an optimistic estimate): ours is at least that, less 1e-9;
  interval   the library gives both bounds.

`lower` and `upper` together are a sandwich, optimistic <= ours <= pessimistic, and it holds also where ours is itself only
an upper bound. The libraries are handed noise / sensitivity and nothing else, as if for adding or removing one record: how
far a record can move a value under replacement is our ledger's business, and the library's replace-one accountants
contradict each other (`library_defects`). Where a library cannot answer, or where its answer
could not contradict ours, the opinion is "not applicable", with the reason. The libraries are imported when they are asked:
opacus imports torch, which takes seconds.
"""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version

import numpy as np

from bandana.flows.annexes.crosscheck.accountants import ACCOUNTANTS, Ask, DoesNotApply, Events, Expected
from bandana.flows.annexes.crosscheck.ledgers import Case, catalog_cases, named_cases
from bandana.flows.annexes.crosscheck.library_defects import KNOWN_DEFECTS, Finding
from bandana.privacy_core import LaplaceEvent, NearlyGaussianEvent, NonPrivateEvent, PrivacyCurve
from bandana.privacy_core.checks import probability

SLACK = 1e-9
REFERENCE = "reference"
LIBRARIES = ("dp-accounting", "opacus")
_PLD_ERROR = 1.1e-5


@dataclass(frozen=True)
class Opinion:
    """Opinion of one library on one ledger at one delta.

    Attributes:
      ledger: its name.
      delta: where the epsilons are stated.
      ours: our epsilon, in nats.
      library: distribution name, or `reference` for a value known to more than 16 digits.
      accountant: which of its accountants.
      expected: how the two must stand to each other.
      epsilon: what the library says, at least 0; its upper end for an interval; None if it does not apply or failed.
      lowest: the smallest value of ours that it allows; None as `epsilon`.
      highest: the largest; None as `epsilon`.
      holds: whether ours is allowed; None if the opinion does not apply.
      note: the reason if it does not apply or failed, else what is special about it.
    """

    ledger: str
    delta: float
    ours: float
    library: str
    accountant: str
    expected: Expected
    epsilon: float | None = None
    lowest: float | None = None
    highest: float | None = None
    holds: bool | None = None
    note: str = ""


@dataclass(frozen=True)
class CrossCheck:
    """All opinions on all ledgers, and the libraries' known defects measured with the installed versions.

    Attributes:
      deltas: where epsilons are stated.
      opinions: one a ledger, delta and accountant.
      not_private: catalog entries whose ledgers hold no noise to account.
      refused: entries at levels that they refuse, and why.
      findings: one a known defect.
      versions: of the libraries that are installed.
    """

    deltas: tuple[float, ...]
    opinions: tuple[Opinion, ...]
    not_private: tuple[str, ...]
    refused: tuple[str, ...]
    findings: tuple[Finding, ...]
    versions: Mapping[str, str]

    @property
    def failed(self) -> tuple[Opinion, ...]:
        """Those that contradict us, or that could not be had for an unknown reason."""
        return tuple(opinion for opinion in self.opinions if opinion.holds is False)

    @property
    def unopposed(self) -> tuple[str, ...]:
        """Ledgers about which no library could say anything at any delta."""
        names = dict.fromkeys(opinion.ledger for opinion in self.opinions)
        answered = {o.ledger for o in self.opinions if o.holds is not None and o.library in LIBRARIES}
        return tuple(name for name in names if name not in answered)

    @property
    def is_sound(self) -> bool:
        """Nothing contradicts us."""
        return not self.failed


def crosscheck(deltas: Sequence[float], on_progress: Callable[[str], None] = lambda what: None) -> CrossCheck:
    """Asks the libraries about every catalog entry's ledgers and about the named ones, and measures the known defects.

    Args:
      deltas: at which epsilons are compared, each strictly between 0 and 1.
      on_progress: called with what comes next.

    Raises:
      ValueError: a delta is out of range.
    """
    distinct = tuple(dict.fromkeys(probability("delta", delta) for delta in deltas))
    on_progress("running the catalog")
    catalog = catalog_cases()
    opinions: list[Opinion] = []
    for case in (*catalog.cases, *named_cases()):
        on_progress(case.name)
        opinions += second_opinions(case, distinct)
    on_progress("known defects")
    with quiet():
        findings = tuple(defect.measure() for defect in KNOWN_DEFECTS)
    versions = {name: version(name) for name in LIBRARIES}
    return CrossCheck(distinct, tuple(opinions), catalog.not_private, catalog.refused, findings, versions)


def second_opinions(
    case: Case, deltas: Sequence[float], ours: Callable[[float], float] | None = None
) -> tuple[Opinion, ...]:
    """Returns the opinion of every library on one ledger.

    Args:
      case: the ledger.
      deltas: where to compare, each strictly between 0 and 1.
      ours: delta -> the epsilon to hold against the libraries; the accountant's own if None.

    Returns:
      One opinion a delta and accountant, those that do not apply included.

    Raises:
      ValueError: a delta is out of range, or the ledger holds no noise to account.
    """
    if not case.events or any(isinstance(event, NonPrivateEvent) for event, _ in case.events):
        raise ValueError(f"{case.name} holds no noise to account")
    epsilon = ours or PrivacyCurve.of(dict(case.events)).epsilon
    opinions = []
    with quiet():
        for delta in deltas:
            probability("delta", delta)
            value = epsilon(delta)
            opinions.append(_reference(case, delta, value))
            for library, accountant, expected, ask in ACCOUNTANTS:
                blank = Opinion(case.name, delta, value, library, accountant, expected)
                opinions.append(_ask(blank, ask, case.events))
    return tuple(opinions)


def allows(ours: float, lowest: float, highest: float) -> bool:
    """True if ours lies between the two, both ends moved outwards by 1e-9; never for a value that is no number."""
    return lowest - SLACK <= ours <= highest + SLACK


def _ask(blank: Opinion, ask: Ask, events: Events) -> Opinion:
    try:
        answer = ask(events, _without_slack(events, blank.delta))
        low, high = (float(x) for x in (answer if isinstance(answer, tuple) else (answer, answer)))
        if math.isnan(low) or math.isnan(high):
            raise ArithmeticError("it answers nan")
        # A library may say less than 0 where the truth is 0: it is clamped here, and listed as a defect.
        low, high = max(0.0, low), max(0.0, high)
        if math.isinf(high):
            raise DoesNotApply("it answers infinity, which contradicts nothing")
        if blank.expected is Expected.LOWER and low == 0.0:
            raise DoesNotApply("its lower bound is 0, which contradicts nothing")
    except DoesNotApply as reason:
        return replace(blank, note=str(reason))
    except Exception as error:  # whatever a library raises without a known reason is shown as a failed check, not hidden
        return replace(blank, holds=False, note=f"{type(error).__name__}: {error}")
    match blank.expected:
        case Expected.EXACT:
            # The libraries' root finding stops at 1e-12.
            lowest, highest = low * (1 - SLACK) - 1e-11, low * (1 + SLACK) + 1e-11
            holds = lowest <= blank.ours <= highest
            return replace(blank, epsilon=low, lowest=lowest, highest=highest, holds=holds)
        case Expected.UPPER:
            low = 0.0
        case Expected.LOWER:
            return replace(blank, epsilon=low, lowest=low, highest=math.inf, holds=allows(blank.ours, low, math.inf))
    return replace(blank, epsilon=high, lowest=low, highest=high, holds=allows(blank.ours, low, high))


def _without_slack(events: Events, delta: float) -> float:
    """Rest of delta beside the slack of nearly Gaussian events, of which no library knows.

    Such a ledger is (epsilon, delta)-DP where the Gaussian one is (epsilon, delta - slack)-DP.
    """
    left = delta - sum(event.slack * count for event, count in events if isinstance(event, NearlyGaussianEvent))
    if left <= 0:
        raise DoesNotApply("the slack of its releases leaves nothing of delta")
    return left


def _reference(case: Case, delta: float, ours: float) -> Opinion:
    """The value that is known to more than 16 digits: ours must equal it, or be at most 1.1e-5 above where it is a bound."""
    is_exact = not any(isinstance(event, LaplaceEvent) for event, _ in case.events)
    blank = Opinion(case.name, delta, ours, REFERENCE, "high precision", Expected.EXACT if is_exact else Expected.INTERVAL)

    def look_up(events: Events, at: float) -> float | tuple[float, float]:
        if at not in case.known:
            raise DoesNotApply("no reference value at this ledger and delta")
        known = case.known[at]
        return known if is_exact else (known, known + _PLD_ERROR)

    return replace(_ask(blank, look_up, case.events), epsilon=case.known.get(delta))


@contextmanager
def quiet() -> Iterator[None]:
    """Keeps the libraries' warnings and log lines off the terminal, and restores everything."""
    loggers = [logging.getLogger(name) for name in ("absl", "opacus", "torch", "root")]
    before = [logger.level for logger in loggers]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            for logger in loggers:
                logger.setLevel(logging.CRITICAL)
            yield
        finally:
            for logger, level in zip(loggers, before, strict=True):
                logger.setLevel(level)
