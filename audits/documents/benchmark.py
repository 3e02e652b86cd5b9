"""Regret of a suite's cells, as a document."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from bandana.audits.documents.fields import (
    AtLeast1,
    Document,
    Exactly3,
    NonNegative,
    Positive,
    Probability,
    Share,
    Size,
    Text,
)


class StoppedTests(Document):
    """Outcomes of tests for the best arm; null: the measure is regret."""

    rounds: Annotated[NonNegative, "Mean rounds until a test stopped, the horizon where it did not."]
    undecided: Annotated[Share, "Share of tests that did not stop."]
    wrong: Annotated[Share, "Share of tests that stopped and recommended an arm that is not a best one."]
    wrong_low: Annotated[Share, "Lower end of its 95 % interval."]
    wrong_high: Annotated[Share, "Upper end of its 95 % interval."]
    error_bound: Annotated[Share | None, "What is proved of that share; null: nothing."]


class Promise(Document):
    """The source's promise for one run of this cell; null: not private."""

    statement: Annotated[str, "The promise, in words."]
    unit: Annotated[str, "Unit of privacy: what one record is."]
    relation: Annotated[str, "Neighboring relation."]
    epsilon: Annotated[NonNegative | None, "Epsilon that it allows at `delta`, in nats; null: no finite value."]
    delta: Annotated[Probability, "Delta at which epsilon is stated."]
    is_pure: Annotated[bool, "Whether it is a promise of pure differential privacy, which holds without delta."]


class OfUser(Document):
    """Loss of a user with all records, by the ledger; null: not private, or nothing is declared of users who return."""

    mu: Annotated[NonNegative | None, "As mu of Gaussian differential privacy; null: no finite value."]
    epsilon: Annotated[NonNegative | None, "Epsilon at the suite's delta, in nats; null: no finite value."]


class Decision(StoppedTests):
    """Tests for the best arm: when they stopped, and what they recommended; null: not such a test, or withheld."""

    rounds_low: Annotated[float, "Lower end of its 95 % interval."]
    rounds_high: Annotated[float, "Upper end of its 95 % interval."]
    least: Annotated[
        NonNegative | None,
        "Least mean number of rounds of any test with this claim and error bound; null: not known here, or not all tests "
        "stopped.",
    ]
    least_text: Annotated[Text | None, "Its theorem; null: none."]
    least_wrong: Annotated[
        Share | None,
        "Least share of wrong recommendations of any test with this claim and budget; null: no fixed budget, or not known "
        "here.",
    ]
    least_wrong_text: Annotated[Text | None, "Its theorem; null: none."]


class BenchmarkCell(Document):
    """One algorithm with one setting."""

    label: Annotated[Text, "Name of the cell, unique in the report."]
    environment: Annotated[str, "Label of its environment."]
    algorithm: Annotated[str, "Name of the algorithm in the catalog."]
    calibration: Annotated[str | None, "Calibration of the noise; null for a non-private twin."]
    privacy_model: Annotated[str, "Trust model: none, central, joint or local."]
    guarantee: Annotated[
        str | None, "Kind of guarantee: approximate, pure, renyi, gdp or zcdp; null for a non-private twin."
    ]
    epsilon: Annotated[Positive | None, "The cell's privacy level as stated by its source, in nats; null: not private."]
    promise: Promise | None
    noise: Annotated[str | None, "Source of the noise of its runs; null: not private."]
    mu: Annotated[
        NonNegative | None,
        "Composition of the ledger over the whole run, as mu of Gaussian differential privacy, no unit; null: no finite "
        "value.",
    ]
    of_user: OfUser | None
    mu_claimed: Annotated[
        NonNegative | None, "mu that the source claims for the whole run; null: not private, or no finite value."
    ]
    mu_spent: Annotated[
        list[NonNegative] | None,
        "mu of the releases before each round of the grid, by the ledger; null: not private, or no finite value.",
    ]
    replications: Annotated[Size, "Independent runs."]
    mean: Annotated[list[float] | None, "Mean regret on the grid, in units of reward; null: withheld."]
    low: Annotated[list[float] | None, "Lower end of the band, in units of reward; null: withheld."]
    high: Annotated[list[float] | None, "Upper end of the band, in units of reward; null: withheld."]
    final_mean: Annotated[float | None, "Mean regret at the last round, in units of reward; null: withheld."]
    final_low: Annotated[float | None, "Lower end of its interval, in units of reward; null: withheld."]
    final_high: Annotated[float | None, "Upper end of its interval, in units of reward; null: withheld."]
    bound: Annotated[
        list[NonNegative] | None,
        "The source's bound on the regret on the grid, in units of reward; null: none is proved here, or regret is "
        "withheld.",
    ]
    bound_text: Annotated[Text | None, "The theorem behind the bound, and its constants; null: no bound."]
    role: Annotated[
        Literal["algorithm", "twin", "reference"],
        "Why it is here: the spec lists it, it is a private cell without its noise, or it is a reference policy.",
    ]
    twin_of: Annotated[str | None, "Label of the cell that it is without its noise; null: of none."]
    values: Annotated[
        dict[str, Any] | None,
        "What the final policies are worth on logged rounds that are held out: of ips, snips and dr each the value with "
        "its 95 % interval, the number of rounds, the effective number of rounds, and the largest weight; null: there is "
        "no log, or it is withheld.",
    ]
    final_quantiles: Annotated[
        Annotated[list[float], Exactly3] | None,
        "The 10 %, 50 % and 90 % quantiles of the final regret over replications, in units of reward; null: withheld.",
    ]
    caution: Annotated[
        Text | None, "Why the interval may cover the mean less often than stated; null: nothing speaks for it, or withheld."
    ]
    lower_bound: Annotated[
        list[NonNegative] | None,
        "Lower bound on the regret of any algorithm with this claim on the grid, in units of reward; null: none is known "
        "here.",
    ]
    lower_bound_text: Annotated[
        Text | None, "The theorem behind the lower bound, and what it holds for; null: no lower bound."
    ]
    decision: Decision | None


class PairedDifference(Document):
    """Final regret of one cell minus that of another, in units of reward."""

    kind: Annotated[
        Literal["noise", "calibration", "reference"],
        "Cost of the noise, one calibration instead of another, or an algorithm beside a reference row.",
    ]
    cell: Annotated[str, "Label of a cell."]
    other: Annotated[str, "Label of the cell that it is compared with."]
    mean: Annotated[float, "Mean difference."]
    low: Annotated[float, "Lower end of its 95 % interval."]
    high: Annotated[float, "Upper end of its 95 % interval."]


class Benchmark(Document):
    """Regret against rounds; null: not measured."""

    grid: Annotated[list[Size], AtLeast1, "Rounds at which regret was recorded, increasing."]
    replications: Annotated[Size, "Independent runs of a cell."]
    band: Annotated[str, "What the bands show."]
    withheld: Annotated[Text | None, "Reason why the regret of some cells is withheld; null: all is shown."]
    cells: Annotated[list[BenchmarkCell], AtLeast1, "The cells."]
    comparisons: Annotated[
        list[PairedDifference], "Paired differences of final regrets, replication by replication, on common random numbers."
    ]
