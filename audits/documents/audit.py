"""One audit, as a document."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from bandana.audits.documents.counterexample import Counterexample
from bandana.audits.documents.fields import AtLeast2, Count, Document, Factor, NonNegative, Probability, Share, Size, Text
from bandana.audits.documents.provenance import Provenance

QuantityName = Annotated[
    str,
    Field(pattern=r"^(mu|rho|epsilon( at delta [0-9.e+-]+)?|(delta at epsilon|divergence of order) [0-9.e+-]+)$"),
    "Bounded quantity: mu, epsilon (pure), epsilon at delta D, delta at epsilon E, divergence of order A (Renyi), rho.",
]
Check = Literal["sampling", "deterministic", "noise"]
"""Replays and bounds, a search for a counterexample, or the noise audit."""
Verdict = Literal["PASS", "NOT REFUTED", "FAIL", "INCONCLUSIVE"]
Role = Literal["claimed", "accounted", "measured"]
ROLES: tuple[Role, ...] = ("claimed", "accounted", "measured")


class Three(Document):
    """The three numbers of a quantity."""

    claimed: Annotated[NonNegative | None, "By the source; null: no finite value."]
    accounted: Annotated[NonNegative | None, "By the ledger; null: no finite value, or no ledger."]
    measured: Annotated[NonNegative | None, "By the audit, a lower confidence bound; null: none."]


class Main(Three):
    """One quantity and its three numbers."""

    quantity: QuantityName


class AuditClaim(Document):
    """The source's promise."""

    statement: Annotated[str, "The promise, in words."]
    theorem: Annotated[str, "Theorem in the source."]
    source: Annotated[str, "The source."]
    mu: Annotated[NonNegative | None, "The promise as mu of Gaussian differential privacy, no unit; null: no finite value."]


class MeasuredEpsilon(Document):
    """The measured epsilon at `delta` by what it assumes, in nats; `epsilon.measured` is the larger."""

    unconditional: Annotated[
        NonNegative | None, "Largest bound on epsilon itself, which assumes nothing of the mechanism; null: none."
    ]
    gaussian: Annotated[
        NonNegative | None,
        "Conversion of the largest bound on mu, which assumes that the promise is a Gaussian-DP one; null: none.",
    ]


class ChargedEvent(Document):
    """Equal releases that touch the worst record."""

    event: Annotated[str, "Kind of noise."]
    noise_multiplier: Annotated[NonNegative | None, "Noise scale over sensitivity, no unit; null: no noise."]
    mu: Annotated[NonNegative | None, "mu of one such release, no unit; null: no finite value."]
    epsilon: Annotated[NonNegative | None, "Pure epsilon of one such release, nats; null: no finite value."]
    count: Annotated[Count, "Number of such releases."]


class Accountant(Document):
    """Derivation of the accounted numbers."""

    method: Annotated[str, "Name of the accounting method."]
    formula: Annotated[str, "The composition, as a formula in plain text."]
    events: Annotated[list[ChargedEvent], "Releases that the worst record pays for; empty without a ledger."]
    noise_source: Annotated[str, "Generator of the noise; empty: unknown."]
    text: Annotated[str, "Explanation of how the worst record was found."]


class Bound(Document):
    """One lower confidence bound."""

    budget: Annotated[Literal["claimed", "test"], "Budget at which the algorithm was replayed."]
    view: Annotated[Literal["transcript", "actions", "report", "one_run", "output"], "View of this adversary."]
    attack: Annotated[str, "Attack that turned the view into a score."]
    neighbor: Annotated[str, "Difference between the data set and its neighbor."]
    quantity: QuantityName
    method: Annotated[Text, "Name of the bound in `bandana.audits.bounds.methods` or `bandana.audits.replays.one_run`."]
    lower: Annotated[NonNegative | None, "Lower confidence bound, in units of the quantity; null: none."]
    claimed: Annotated[NonNegative | None, "Largest value that the claim allows; null: no finite value."]
    level: Annotated[Probability, "Largest probability that this bound exceeds the truth."]
    n_data: Annotated[Count, "Number of replays of the data set; in one run, of excluded canaries."]
    n_neighbor: Annotated[Count, "Number of replays of the neighbor; in one run, of included canaries."]


class TestBudget(Document):
    """The same algorithm at a budget at which faults are detectable, where they were planted; null: the claimed one is."""

    claim: Annotated[str, "The claim at that budget, in words."]
    main: Annotated[Main, "Main quantity of that claim."]


class Measurement(Document):
    """The statistical audit."""

    confidence: Annotated[Probability, "Joint confidence of all bounds, including those at the test budget."]
    replays_per_side: Annotated[Count, "Number of replays of the data set, and of its neighbor."]
    seed: Annotated[int, "Seed of the replays."]
    table: Annotated[str, "The data set that was replayed."]
    bounds: Annotated[list[Bound], "All bounds, one for each budget, view, quantity and neighbor."]
    smallest_factor: Annotated[
        Factor | None,
        "Power: with 95 % probability the audit would have caught a main quantity this many times the claimed one, at the "
        "test budget if there is one; null: no factor.",
    ]
    smallest_factor_at_claim: Annotated[Factor | None, "The same at the claimed budget; null: no factor."]
    test_budget: TestBudget | None
    text: Annotated[str, "Reason why the bounds are valid."]


class Deterministic(Document):
    """The deterministic audit and the noise audit."""

    examples: Annotated[Count, "Number of pairs of data sets that were tried; 0: none, for lack of a ledger."]
    counterexample: Counterexample | None
    noise_finding: Annotated[str | None, "Difference between the noise and its declaration; null: none found."]


class Control(Document):
    """One planted fault."""

    name: Annotated[str, "Name of the fault."]
    fault: Annotated[str, "Description of the fault."]
    expected: Annotated[list[Check], "Checks that must catch it."]
    caught_by: Annotated[list[Check], "Checks that caught it."]
    measured: Annotated[
        NonNegative | None,
        "Lower confidence bound on the faulty copy's main quantity, at the budget where it was planted; null: none.",
    ]
    limit: Annotated[
        NonNegative | None,
        "What `measured` must exceed to be caught by sampling: the smaller of claimed and accounted; null: no finite value.",
    ]
    caught: Annotated[bool, "Whether every expected check caught it."]


class PowerCurve(Document):
    """Share of such audits that would refute the claim, by the factor by which it is exceeded; null: not estimated."""

    quantity: QuantityName
    factors: Annotated[list[Factor], AtLeast2, "Ratio of the true to the claimed value, increasing."]
    caught: Annotated[list[Share], "Share of audits that refute the claim, one per factor."]
    text: Annotated[str, "Method and budget of the estimate."]


class Tradeoff(Document):
    """Trade-off between the two errors of an attack; null: not measured."""

    fpr: Annotated[list[Share], AtLeast2, "False-positive rates, the common grid, increasing."]
    claimed: Annotated[list[Share], "Least false-negative rate that the claim allows, on the grid."]
    measured: Annotated[list[Share], "False-negative rate of the attack in the replays, on the grid."]
    lower_bound: Annotated[list[Share], "Curve of the measured lower bound on mu, on the grid."]
    mu_lower: Annotated[NonNegative | None, "The mu of `lower_bound`, no unit; null: none."]


class Rounds(Document):
    """Rounds, or episodes, that an audit reached; null: it is of a release, or a violation came before they were counted."""

    replayed: Annotated[Size, "Rounds of each replay."]
    walked: Annotated[
        Count, "Rounds of the benchmark's whole horizon that both sides played without replays; 0: replays are all there is."
    ]


class _Measured(Document):
    """A claim, what we account for, and what we measured."""

    label: Annotated[Text, "Name of the audit, unique in the report."]
    algorithm: Annotated[str, "Name of the algorithm in the catalog."]
    calibration: Annotated[str | None, "Calibration of the noise; null: there is only one."]
    privacy_model: Annotated[str, "Trust model: none, central, joint or local."]
    parameters: Annotated[dict[str, object], "Public parameters of the algorithm: name -> value."]
    unit: Annotated[str, "Unit of privacy: what one record is."]
    relation: Annotated[str, "Neighboring relation."]
    view_of_adversary: Annotated[str, "View of the adversary in the claim."]
    claim: AuditClaim
    delta: Annotated[Probability, "Probability at which every epsilon of this audit is stated."]
    main: Annotated[Main, "Main quantity of the claim, at the claimed budget."]
    mu: Annotated[Three, "mu of Gaussian differential privacy, no unit."]
    epsilon: Annotated[Three, "epsilon at `delta`, in nats; measured: the larger of those in `measured_epsilon`."]
    measured_epsilon: MeasuredEpsilon
    accountant: Accountant
    measurement: Measurement
    deterministic: Deterministic
    controls: Annotated[list[Control], "Planted faults, audited at the same effort."]
    rounds: Rounds | None


class AuditEntry(_Measured):
    """An audit before its report is written, which adds the power curve."""

    tradeoff: Tradeoff | None
    coverage: list[str]
    verdict: Verdict
    reasons: list[str]
    provenance: Provenance | None


class Audit(_Measured):
    """One audit: a claim, what we account for, what we measured, and the verdict."""

    power: PowerCurve | None
    tradeoff: Tradeoff | None
    coverage: Annotated[list[str], "What the searches tried, line by line; empty: a violation was found first."]
    verdict: Annotated[Verdict, "Outcome of the audit."]
    reasons: Annotated[list[str], "Reasons for the verdict."]
    provenance: Provenance | None
