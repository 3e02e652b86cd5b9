"""A benchmark's leaderboard, as a document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from typing_extensions import TypedDict

from bandana.audits.documents.audit import Verdict
from bandana.audits.documents.benchmark import StoppedTests
from bandana.audits.documents.fields import AtLeast1, Count, Document, Moment, NonNegative, Positive, Share, Size, Text
from bandana.audits.reporting.document import TOLERANCE
from bandana.audits.reporting.kinds import KINDS, Contradiction, Kind
from bandana.flows.annexes.leaderboard import page

_Class = TypedDict(
    "_Class", {"class": Annotated[str, "Privacy of the algorithms that it speaks of, such as 1-GDP in the joint model."]}
)
"""`class` is a word of Python."""


class Ranked(Document):
    """The part of a row that is ranked."""

    exploration: Annotated[str | None, "Parameter of exploration, with its value; null: it has none."]
    mean: Annotated[float, "Mean over replications of the problem's measure; regret is in units of reward."]
    low: Annotated[float, "Lower end of its 95 % confidence interval."]
    high: Annotated[float, "Upper end of its 95 % confidence interval."]
    replications: Annotated[Size, "How many there are: more where the measure is skewed."]
    is_on_front: Annotated[
        bool,
        "Whether no row in the same trust model promises as much and has a smaller mean; of tests of fixed confidence, "
        "among those that keep their error.",
    ]
    is_on_own_front: Annotated[bool, "The same among rows whose guarantee is of the same kind."]


class TunedRow(Ranked):
    """The row with the exploration that was tuned for it."""


class Row(Ranked):
    """One algorithm at one level of privacy, or one that is not private, with the exploration of its family."""

    label: Annotated[Text, "Unique on the problem."]
    algorithm: Annotated[str, "Name in the catalog, or of your own file."]
    entry: Annotated[str, "Label of the catalog's entry."]
    calibration: Annotated[str | None, "Noise calibration; null: none."]
    privacy_model: Annotated[str, "Trust model: none, central, joint, local or another of the catalog."]
    role: Annotated[Literal["private", "non-private", "reference"], "What the row is."]
    is_own: Annotated[bool, "Whether it is a row of your own."]
    source: Annotated[str, "Publication, or the file."]
    claim: Annotated[str | None, "What is promised; null: nothing."]
    relation: Annotated[str | None, "Neighboring relation of the promise."]
    mu_claimed: Annotated[NonNegative | None, "The claim as mu of Gaussian DP; null: not private, or infinite."]
    mu_accounted: Annotated[
        NonNegative | None, "What the ledger composed over the horizon, as mu; null: not private, or not derived."
    ]
    mu_measured: Annotated[NonNegative | None, "Lower confidence bound on mu from the audit; null: not audited."]
    verdict: Annotated[Verdict | None, "Of the audit; null: not audited."]
    audited_on: Annotated[
        str | None, "Problem on which the entry was audited at this level; a promise depends on no problem."
    ]
    guarantee: Annotated[
        Literal["pure", "concentrated", "approximate"] | None,
        "Kind of the claim; concentrated: Renyi, zero-concentrated and Gaussian DP; null: not private.",
    ]
    tuned: Annotated[TunedRow | None, "With tuned exploration; null: nothing was chosen for it, or it is not finished."]
    caution: Annotated[str | None, "Why the interval may be too short; null: nothing speaks for it."]
    median: Annotated[float | None, "Of the replications; null: the measure is a share."]
    quantile_90: Annotated[float | None, "Which nine of ten replications do not exceed; null: the measure is a share."]
    no_better_than_uniform: Annotated[
        Share | None, "Share of replications that lost as much as uniform play, or more; null: there is no such row."
    ]
    lower_bound: Annotated[NonNegative | None, "The least measure of any algorithm with the claim; null: none is known."]
    over_lower_bound: Annotated[float | None, "The mean over the lower bound; null: none is known, or it is 0."]
    test: StoppedTests | None
    seconds: Annotated[
        NonNegative | None, "Seconds of one replication on one core; null: computed and not played, or not recorded."
    ]


class Best(Document):
    """A contest: who is best of the private entries of one trust model, each with its weakest claim within a level."""

    column: Annotated[Literal["defaults", "tuned"], "Which exploration rows play with: their family's, or their own."]
    mu: Annotated[Positive, "Level."]
    privacy_model: Annotated[str, "Trust model."]
    guarantee: Annotated[
        Literal["pure", "concentrated", "approximate"] | None, "Kind of guarantee of all that play; null: any."
    ]
    label: Annotated[str | None, "The row of least mean; null: none promises as much."]
    mu_claimed: Annotated[NonNegative | None, "Its claim as mu, which may be far within the level."]
    mean: Annotated[float | None, "Its mean."]
    low: Annotated[float | None, "Lower end of the interval."]
    high: Annotated[float | None, "Upper end of the interval."]
    candidates: Annotated[Count, "How many rows play, one for each entry."]
    best_set: Annotated[
        list[str],
        "The 95 % confidence set of the best: rows that are not shown to be worse than another, by paired t-tests with "
        "Holm's method over all ordered pairs.",
    ]
    not_beaten: Annotated[
        list[str],
        "Reference rows that the row of least mean is not shown to beat, by paired t-tests at 5 % together; with any of "
        "them, nobody has won.",
    ]


class Agreement(Document):
    """Agreement of defaults and tuned rows in a contest among all guarantees."""

    mu: Annotated[Positive, "Level."]
    privacy_model: Annotated[str, "Trust model."]
    rows: Annotated[Count, "How many rows are in both."]
    kendall: Annotated[float | None, "Kendall's tau-b of their means; null: fewer than three rows, or all are equal."]
    spearman: Annotated[float | None, "Spearman's correlation of their ranks; null: as above."]
    defaults: Annotated[str | None, "Winner among defaults; null: nobody."]
    tuned: Annotated[str | None, "Winner among tuned rows; null: nobody."]


class Columns(Document):
    """Agreement of defaults and tuned rows on all problems."""

    contests: Annotated[Count, "Contests that both columns have."]
    ranked: Annotated[Count, "Those of at least three rows."]
    kendall: Annotated[float | None, "Mean of Kendall's tau-b over these; null: there are none."]
    spearman: Annotated[float | None, "Mean of Spearman's correlation over these; null: there are none."]
    won: Annotated[Count, "Contests that somebody wins in a column at least."]
    holds: Annotated[Share | None, "Share of these that the same row wins in both; null: there are none."]


class LowerBound(_Class, Document):
    """The least measure of any algorithm of a class."""

    privacy_model: Annotated[str, "Trust model of the class."]
    guarantee: Annotated[str | None, "Kind of guarantee; null: none."]
    mu: Annotated[Positive | None, "Level; null: without privacy."]
    value: Annotated[NonNegative, "As the rows' mean, at the horizon."]
    text: Annotated[str, "Theorem, class and constants, and on which problems it holds."]


class Problem(Document):
    """One problem."""

    name: Annotated[Text, "Of its file."]
    title: Annotated[str, "Title."]
    description: Annotated[str, "What it is, in one line."]
    kind: Annotated[str, "Kind of problem, such as finite or contextual."]
    data: Annotated[str, "Where the data come from: simulated, public or own."]
    about: Annotated[str, "The environment in words."]
    measure: Annotated[
        Literal["regret", "rounds", "errors"],
        "What the rows' mean, interval and lower bound are of: final regret, rounds until a test for the best arm stops, "
        "or the share of tests that recommend a wrong arm.",
    ]
    unit: Annotated[str, "What a user is, in the plural."]
    horizon: Annotated[Size, "Rounds or episodes."]
    replications: Annotated[Size, "Of each row, but for skewed ones, which have more."]
    band: Annotated[str, "How intervals are made."]
    is_changed: Annotated[bool, "Whether it differs from what the version lists."]
    levels: Annotated[list[Positive], "Levels of privacy, as mu."]
    parameters: Annotated[dict[str, object], "Values of parameters, the same for every entry that takes them."]
    rows: Annotated[list[Row], "Finished rows."]
    lower_bounds: Annotated[list[LowerBound], "Empty: none is known."]
    best: Annotated[list[Best], "One for each trust model, level, kind of guarantee and column."]
    agreement: Annotated[list[Agreement], "One for each trust model and level that both columns have."]
    missing: Annotated[list[str], "Rows that are not finished."]
    left_out: Annotated[list[str], "Entries of this kind that do not play."]


class AllAudits(Document):
    """All audits of the page."""

    number: Annotated[Count, "How many there are."]
    confidence: Annotated[
        Share | None, "That all their bounds hold together: 1 less the failure probabilities of all; null: no audit."
    ]


class Leaderboard(Document):
    """A benchmark's leaderboard."""

    schema: Annotated[Literal["bandana/leaderboard/5"], "Version of this format."]
    kind: Annotated[Literal["leaderboard"], "Kind of document."]
    title: Annotated[Text, "Title."]
    suite: Annotated[Text, "Version and form in words."]
    version: Annotated[Size, "Of the benchmark's problems."]
    form: Annotated[Literal["quick", "whole"], "Numbers of the two forms are never mixed."]
    rule: Annotated[str | None, "How the quick form follows from the whole; null: it is the whole."]
    created: Annotated[Moment | None, "Time of the last result; null: not recorded."]
    levels: Annotated[list[Positive], "Levels of all problems, as mu."]
    audits: AllAudits
    columns: Columns
    problems: Annotated[list[Problem], AtLeast1, "In the order of the page."]
    commands: Annotated[list[str], "Commands that make it."]
    provenance: Annotated[dict[str, object], "Who computed the results, as in a report."]


def _contradictions(document: Leaderboard) -> Iterator[Contradiction]:
    names = [problem["name"] for problem in document["problems"]]
    for index, problem in enumerate(document["problems"]):
        path = f"$.problems[{index}]"
        if problem["name"] in names[:index]:
            yield f"{path}.name", problem["name"], "occurs twice; names must be unique"
        labels = [row["label"] for row in problem["rows"]]
        for place, row in enumerate(problem["rows"]):
            if row["label"] in labels[:place]:
                yield f"{path}.rows[{place}].label", row["label"], "occurs twice; labels must be unique"
            parts: list[tuple[str, Ranked]] = [("", row), *([(".tuned", row["tuned"])] if row["tuned"] else [])]
            for name, part in parts:
                room = abs(part["mean"]) * TOLERANCE
                if not part["low"] - room <= part["mean"] <= part["high"] + room:
                    yield f"{path}.rows[{place}]{name}.mean", part["mean"], "lies outside of its interval"
            if (row["role"] == "private") != (row["guarantee"] is not None):
                yield f"{path}.rows[{place}].guarantee", row["guarantee"], "must be given by private rows, and by no others"
            if (row["role"] == "private") != (row["claim"] is not None):
                yield f"{path}.rows[{place}].claim", row["claim"], "must be given by private rows, and by no others"
            if (row["verdict"] is None) != (row["audited_on"] is None):
                yield f"{path}.rows[{place}].audited_on", row["audited_on"], "must name the problem of an audit"
        for place, best in enumerate(problem["best"]):
            for label in (best["label"], *best["best_set"], *best["not_beaten"]):
                if label is not None and label not in labels:
                    yield f"{path}.best[{place}].label", label, "must be the label of a row"
            if best["label"] is not None and best["label"] not in best["best_set"]:
                yield f"{path}.best[{place}].best_set", best["best_set"], "must hold the row of least mean"


_KICKERS = {"leaderboard": "Leaderboard of a benchmark"}
LEADERBOARD = KINDS["leaderboard"] = Kind(
    "bandana/leaderboard/5", Leaderboard, _KICKERS, page.headline, page.sections, contradictions=_contradictions
)
