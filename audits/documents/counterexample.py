"""A counterexample of the deterministic audit, as a document."""

from __future__ import annotations

from typing import Annotated, Literal

from bandana.audits.documents.fields import Count, Document, Exactly3, NonNegative, Size


class Stretch(Document):
    """One stretch."""

    start: Annotated[Count, "First round."]
    stop: Annotated[Size, "One past the last round."]
    rewards: Annotated[list[float], "Rewards, one per arm, in units of reward."]


class Case(Document):
    """Input that reproduces the counterexample."""

    n_rounds: Annotated[Size, "Rounds of the run."]
    record: Annotated[Count, "The record that changes."]
    others: Annotated[list[Count], "Other records of the same user, which change to the same; empty: the record is alone."]
    before: Annotated[list[float], "Its rewards on D, one per arm."]
    after: Annotated[list[float], "Its rewards on D', one per arm."]
    seed: Annotated[int, "Seed of the noise."]
    wide: Annotated[Count | None, "The release that is drawn with three times its noise; null: none."]
    episode: Annotated[
        Annotated[list[Size], Exactly3] | None,
        "Steps, states and actions of an episode; rewards are then those of each step, state and action, in that order. "
        "Null: no episodes.",
    ]
    covariates: Annotated[
        list[object] | None,
        "Covariates of each user on D: features of the actions; in episodes the first state and then the next states of "
        "each step, state and action. Null: nothing.",
    ]
    replaced_covariates: Annotated[list[object] | None, "Covariates of the record on D'; null: the same."]
    rewards: Annotated[list[Stretch], "All rewards on D, as stretches of equal rows."]


class PlayedRound(Document):
    """One round."""

    round: Annotated[Count, "Which one; also the record's number."]
    arm: Annotated[Count | None, "Arm played on D; null: none."]
    neighbor_arm: Annotated[Count | None, "Arm played on D'; null: none."]
    states: Annotated[list[Count] | None, "States along the episode on D; null for rounds."]
    actions: Annotated[list[Count] | None, "Actions along the episode on D; null for rounds."]
    neighbor_states: Annotated[list[Count] | None, "States along the episode on D'; null for rounds."]
    neighbor_actions: Annotated[list[Count] | None, "Actions along the episode on D'; null for rounds."]
    rewards: Annotated[list[float], "Rewards on D, one per arm, in units of reward; for episodes those along the path."]
    neighbor_rewards: Annotated[list[float], "Rewards on D', one per arm, in units of reward."]


class ShownRelease(Document):
    """One release, on both data sets."""

    release: Annotated[Count, "Number of the release."]
    rounds: Annotated[Count, "Number of rounds before the release."]
    mechanism: Annotated[str, "Mechanism that adds the noise."]
    norm: Annotated[str, "Norm of the change."]
    start: Annotated[int, "First record that is charged."]
    stop: Annotated[int, "One past the last record that is charged."]
    carried: Annotated[int | None, "First record of the sequence that it continues, read without a charge; null: none."]
    reads_record: Annotated[bool, "Whether it declares to read the record that changes."]
    moved: Annotated[NonNegative | None, "Distance that its exact value moved; null: no finite number."]
    allowed: Annotated[
        NonNegative | None,
        "Largest allowed distance: the sensitivity, or 0 if the release does not read the record; null: no finite number.",
    ]
    times: Annotated[NonNegative | None, "moved / allowed; null: nothing was allowed."]
    cost: Annotated[str, "Charge per record, in words."]
    is_offending: Annotated[bool, "Whether it is at fault, alone or together with others."]


class Divergence(Document):
    """First place where the two runs diverge; null: they do not."""

    round: Annotated[Count, "Which one."]
    arm: Annotated[int | None, "Arm played on D; null: the run had ended."]
    neighbor_arm: Annotated[int | None, "Arm played on D'; null: the run had ended."]
    summary: Annotated[str, "Description in words."]


class JointEffect(Document):
    """Joint effect of the offending releases; null: each is at fault by itself."""

    record: Annotated[int | None, "Record with too large a total charge; null: no charge is at fault."]
    found: Annotated[float | None, "The sum; null: no finite number."]
    allowed: Annotated[float | None, "The limit; null: no finite number."]
    summary: Annotated[str, "Description in words."]


class Counterexample(Document):
    """A run that breaks the privacy argument, on a data set D and its neighbor D'; null: none found. Counts start at 0."""

    summary: Annotated[str, "One sentence on the change and the violation."]
    lines: Annotated[list[str], "The whole counterexample as text."]
    kind: Annotated[
        Literal["decision", "span", "sensitivity", "sequence", "not a number", "no noise", "book", "released state"],
        "Part of the argument that fails.",
    ]
    reason: Annotated[str, "The violation in words, with its numbers."]
    release: Annotated[Count | None, "The first offending release; null: none by itself."]
    replicate: Annotated[Count, "The replicate that shows it."]
    n_replicates: Annotated[Size, "Number of replicates."]
    case: Case
    data: Annotated[list[PlayedRound], "The run by round; for a long run only the relevant rounds."]
    n_releases: Annotated[Count, "Total number of releases of the replicate."]
    releases: Annotated[list[ShownRelease], "Releases of the run; for a long run only the relevant ones."]
    difference: Divergence | None
    total: JointEffect | None
