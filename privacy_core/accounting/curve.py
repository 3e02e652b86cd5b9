"""Everything that the accountant derives from the events on a record: epsilon, delta, Renyi divergence, trade-off."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from bandana.privacy_core.accounting import composition, gaussian
from bandana.privacy_core.accounting.composition import Events
from bandana.privacy_core.accounting.events import (
    BoundedRangeEvent,
    ConcentratedEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    NearlyGaussianEvent,
    NonPrivateEvent,
    PureEvent,
    ResponseEvent,
)
from bandana.privacy_core.accounting.guarantees import ZCDP, GaussianDP, Relation, TrustModel
from bandana.privacy_core.arrays import FloatArray
from bandana.privacy_core.checks import at_least, non_negative, order, probability, rates

_EVENT_NAMES: dict[str, type[Any]] = {
    "gaussian": GaussianEvent, "laplace": LaplaceEvent, "concentrated": ConcentratedEvent, "non-private": NonPrivateEvent,
    "nearly-gaussian": NearlyGaussianEvent,
    "response": ResponseEvent, "pure": PureEvent, "bounded-range": BoundedRangeEvent,
}  # fmt: skip
_N_SLOPES = 400


@dataclass(frozen=True)
class PrivacyCurve:
    """The privacy of a run: that of the worst of some records, at every point of the curve.

    Gaussian events alone: exact; where they have a slack, it is added to delta. One randomized response or bounded-range
    event: exact. Events of pure DP alone: the smallest of basic composition, optimal composition of pure DP, and the privacy
    loss distribution. Gaussian with pure events: the privacy loss distribution, or where delta is below 1e-8 the smaller of
    Renyi and "Gaussian exactly, plus pure". With concentrated events: Renyi. All but the first are upper bounds; see
    `bandana.privacy_core.accounting.composition`.

    Attributes:
      books: for each record that may be the worst, its events and their counts, sorted.
      relation: which data sets are neighbors.
      trust: who sees the data.
    """

    books: tuple[Events, ...]
    relation: Relation = Relation.REPLACE_RECORD
    trust: TrustModel = TrustModel.CENTRAL

    @classmethod
    def of(
        cls,
        *books: Mapping[Event, int],
        relation: Relation = Relation.REPLACE_RECORD,
        trust: TrustModel = TrustModel.CENTRAL,
    ) -> Self:
        """The curve of records that the given events touch: event -> count, one book a record, at least one.

        Raises:
          ValueError: there is no event, or a count is below 1.
        """
        if not books or not all(books):
            raise ValueError("a privacy curve needs at least one event on each record")
        for events in books:
            for event, count in events.items():
                at_least(f"the count of {event}", count, 1)
        ordered = [tuple(sorted(b.items(), key=lambda item: (type(item[0]).__name__, item[0]))) for b in books]
        return cls(tuple(ordered), relation, trust)

    def epsilon(self, delta: float) -> float:
        """The smallest known epsilon >= 0 of (epsilon, delta)-DP; infinite only if a value was released as it is."""
        probability("delta", delta)
        return max(_epsilon(events, delta) for events in self.books)

    epsilon_at = epsilon

    def delta(self, epsilon: float) -> float:
        """The smallest known delta of (epsilon, delta)-DP, in [0, 1]."""
        non_negative("epsilon", epsilon)
        return max(_delta(events, epsilon) for events in self.books)

    def rdp(self, alpha: float) -> float:
        """A bound on the Renyi divergence of order alpha; exact for one record of Gaussian events."""
        order("alpha", alpha)
        return max(composition.renyi_divergence(events, alpha) for events in self.books)

    def tradeoff(self, fpr: ArrayLike) -> FloatArray:
        """A lower bound on the false-negative rate of any test with the false-positive rate `fpr`.

        Exact for Gaussian events. Elsewhere the largest of the lines that the curve implies at 400 values of epsilon,
        max(0, 1 - delta - e^epsilon x, e^-epsilon (1 - delta - x)).
        Source: Dong, Roth, Su (2022), Proposition 2.5 (primal-dual).

        Args:
          fpr: any shape, in [0, 1].

        Returns:
          Same shape.
        """
        x = rates("fpr", fpr)
        return np.asarray(np.min([self._tradeoff(events, x) for events in self.books], axis=0))

    def _tradeoff(self, events: Events, x: FloatArray) -> FloatArray:
        mu, _pure = composition.split(events)
        if _is_gaussian(events):
            kept = 1 - _slack(events)
            return np.asarray(kept * GaussianDP(mu).tradeoff(np.minimum(x / kept, 1.0)))
        if math.isinf(_epsilon(events, 0.5)):
            return np.zeros_like(x)
        lower = np.zeros_like(x)
        # Fewer lines are a lower bound too; beyond e^700 a slope has no number.
        for epsilon in np.linspace(0.0, min(_epsilon(events, 1e-10), 700.0), _N_SLOPES):
            delta = _delta(events, float(epsilon))
            steep, flat = 1 - delta - math.exp(epsilon) * x, math.exp(-epsilon) * (1 - delta - x)
            lower = np.maximum(lower, np.maximum(steep, flat))
        return lower

    def points(self, n_points: int = 200, smallest_delta: float = 1e-10) -> tuple[FloatArray, FloatArray]:
        """Epsilons (n_points,) from 0 on, and delta at each, for a plot or a table.

        Raises:
          ValueError: the run has no privacy.
        """
        last = self.epsilon(smallest_delta)
        if not math.isfinite(last):
            raise ValueError("there is nothing to draw: a value was released without noise")
        epsilons = np.linspace(0.0, last, n_points)
        return epsilons, np.array([self.delta(float(epsilon)) for epsilon in epsilons])

    def plot(self, axes: Any, **style: Any) -> None:
        """Draws delta, on a logarithmic axis, against epsilon; `axes` is a matplotlib Axes, `style` goes to its `plot`."""
        epsilons, deltas = self.points()
        axes.plot(epsilons, np.maximum(deltas, np.finfo(float).tiny), **style)
        axes.set(xlabel="epsilon", ylabel="delta", yscale="log")

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, for JSON; `from_dict` reads it."""
        names = {kind: name for name, kind in _EVENT_NAMES.items()}

        def written(event: Event, count: int) -> dict[str, Any]:
            parameters = {name: getattr(event, name) for name in event.__dataclass_fields__}
            return {"event": names[type(event)], **parameters, "count": count}

        books = [[written(event, count) for event, count in events] for events in self.books]
        return {"relation": self.relation.value, "trust": self.trust.value, "records": books}

    @classmethod
    def from_dict(cls, tree: Mapping[str, Any]) -> Self:
        """Reads a curve that `to_dict` wrote.

        Raises:
          ValueError: something is missing, unknown, doubled, or out of range; the message says what.
        """

        def read(item: Mapping[str, Any]) -> tuple[Event, int]:
            kind = _EVENT_NAMES.get(item["event"])
            if kind is None:
                raise ValueError(f"unknown event {item['event']!r}; known are {', '.join(_EVENT_NAMES)}")
            return kind(**{name: item[name] for name in kind.__dataclass_fields__}), at_least("count", item["count"], 1)

        try:
            books = [[read(item) for item in book] for book in tree["records"]]
            scope = Relation(tree["relation"]), TrustModel(tree["trust"])
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"this is no privacy curve: {type(error).__name__}: {error}") from error
        for book in books:
            if len(dict(book)) < len(book):
                raise ValueError("an event is listed twice in one record; add its counts up in one entry")
        return cls.of(*(dict(book) for book in books), relation=scope[0], trust=scope[1])

    def __str__(self) -> str:
        records = (", ".join(f"{count} x {event}" for event, count in events) for events in self.books)
        return "composition of " + "; or ".join(records)


def _is_gaussian(events: Events) -> bool:
    return all(isinstance(event, GaussianEvent) for event, _ in events)


def _slack(events: Events) -> float:
    """Bounds what nearly Gaussian events add to delta."""
    slack = sum(event.slack * count for event, count in events if isinstance(event, NearlyGaussianEvent))
    return min(1.0 - 1e-15, slack)


def _alone(events: Events) -> ResponseEvent | PureEvent | BoundedRangeEvent | None:
    """The only event on a record, if its own curve is known."""
    (event, count), *others = events
    is_known = isinstance(event, ResponseEvent | PureEvent | BoundedRangeEvent) and count == 1 and not others
    return event if is_known else None  # type: ignore[return-value]


def _epsilon(events: Events, delta: float) -> float:
    if any(isinstance(event, NonPrivateEvent) for event, _ in events):
        return math.inf
    if slack := _slack(events):
        is_known = _is_gaussian(events) and delta > slack
        return gaussian.epsilon_of(composition.split(events)[0], delta - slack) if is_known else math.inf
    if _is_gaussian(events):
        return gaussian.epsilon_of(composition.split(events)[0], delta)
    if all(isinstance(event, GaussianEvent | ConcentratedEvent) for event, _ in events):
        return ZCDP(sum(event.rho * count for event, count in events)).epsilon_at(delta)
    if (one := _alone(events)) is not None:
        return one.epsilon_of(delta)
    ways = (composition.basic_epsilon, composition.optimal_epsilon, composition.renyi_epsilon, composition.pld_epsilon)
    return min(way(events, delta) for way in ways)


def _delta(events: Events, epsilon: float) -> float:
    if any(isinstance(event, NonPrivateEvent) for event, _ in events):
        return 1.0
    if slack := _slack(events):
        return min(1.0, gaussian.delta_of(composition.split(events)[0], epsilon) + slack) if _is_gaussian(events) else 1.0
    if _is_gaussian(events):
        return gaussian.delta_of(composition.split(events)[0], epsilon)
    if (one := _alone(events)) is not None:
        return float(one.delta(epsilon))
    ways = (composition.basic_delta, composition.optimal_delta, composition.renyi_delta, composition.pld_delta)
    return min(way(events, epsilon) for way in ways)
