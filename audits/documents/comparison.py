"""Changes between two reports, as a document."""

from __future__ import annotations

from typing import Annotated, Literal

from bandana.audits.documents.audit import Three, Verdict
from bandana.audits.documents.fields import Count, Document, Factor, Moment, NonNegative, Probability, Sha256, Size, Text

Status = Annotated[Literal["new", "gone", "changed", "same"], "new: only in the second run; gone: only in the first."]


class Run(Document):
    """One report."""

    kind: Annotated[str, "experiment, audit or catalog."]
    title: Annotated[str, "Its title."]
    suite: Annotated[str, "Its suite."]
    created: Annotated[
        Moment | None, "Time at which the last of its results was computed, ISO 8601 with offset; null: not recorded."
    ]
    evidence: Annotated[Sha256, "SHA-256 over the content of all its evidence, without provenance."]


class ComparedAudit(Document):
    """An audit in one run; null: absent."""

    verdict: Annotated[Verdict, "Its outcome."]
    claim: Annotated[str, "The claim, in words."]
    delta: Annotated[Probability, "Delta at which epsilon is stated."]
    quantity: Annotated[str, "Main quantity of the claim."]
    main: Three
    epsilon: Three
    smallest_factor: Annotated[Factor | None, "Smallest detectable factor; null: none."]
    caught: Annotated[Count, "Number of planted faults caught."]
    planted: Annotated[Count, "Number of planted faults."]


class ComparedCell(Document):
    """A cell in one run; null: absent."""

    environment: Annotated[str, "Label of its environment."]
    horizon: Annotated[Size, "Last round at which regret was recorded."]
    replications: Annotated[Size, "Independent runs."]
    mu_claimed: Annotated[NonNegative | None, "mu that the source claims; null: none."]
    mu: Annotated[NonNegative | None, "mu that the ledger composes to; null: none."]
    final_mean: Annotated[float | None, "Final regret; null: withheld."]
    final_low: Annotated[float | None, "Lower end of its interval; null: withheld."]
    final_high: Annotated[float | None, "Upper end of its interval; null: withheld."]


class Runs(Document):
    """The two reports."""

    before: Run
    after: Run


class AuditChange(Document):
    """One audit, in both runs."""

    label: Annotated[Text, "Its label."]
    status: Status
    is_worse: Annotated[bool, "Whether the verdict became worse."]
    before: ComparedAudit | None
    after: ComparedAudit | None
    changes: Annotated[list[str], "Differences, one sentence each."]


class RegretDifference(Document):
    """Final regret after minus before, in units of reward; null: not comparable."""

    mean: Annotated[float, "Difference of the means."]
    low: Annotated[float, "Lower end of its 95 % interval."]
    high: Annotated[float, "Upper end of its 95 % interval."]
    is_resolved: Annotated[bool, "Whether the interval excludes 0."]


class CellChange(Document):
    """One cell, in both runs."""

    label: Annotated[Text, "Its label."]
    status: Status
    before: ComparedCell | None
    after: ComparedCell | None
    difference: RegretDifference | None
    changes: Annotated[list[str], "Differences, and the reason if regret is not compared."]


class SettingChange(Document):
    """One setting."""

    name: Annotated[str, "Its name."]
    before: Annotated[str | None, "Value before; null: none."]
    after: Annotated[str | None, "Value after; null: none."]


class FileChange(Document):
    """One file."""

    path: Annotated[str, "Path inside the evidence folder."]
    before: Annotated[Sha256 | None, "SHA-256 of its content without its provenance, hexadecimal; null: no such file."]
    after: Annotated[Sha256 | None, "The same in the later run."]


class EvidenceChanges(Document):
    """Files behind the numbers."""

    n_same: Annotated[Count, "Number of files that agree in both runs, apart from their provenance."]
    files: Annotated[list[FileChange], "Files that differ."]


class Comparison(Document):
    """Changes between two reports."""

    schema: Annotated[Literal["bandana/comparison/2"], "Version of this format."]
    kind: Annotated[Literal["comparison"], "Kind of document."]
    title: Annotated[Text, "Title."]
    suite: Annotated[Text, "Names of both suites."]
    created: Annotated[
        Moment | None,
        "Time at which the last result of the later run was computed, ISO 8601 with offset; null: not recorded.",
    ]
    runs: Runs
    audits: Annotated[list[AuditChange], "Every audit of either run."]
    cells: Annotated[list[CellChange], "Every benchmarked cell of either run."]
    settings: Annotated[list[SettingChange], "Other differences: data, seeds, provenance, sizes."]
    spec_diff: Annotated[str, "Unified difference of the specifications; empty: they are the same."]
    evidence: EvidenceChanges
