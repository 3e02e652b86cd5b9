"""A report on an experiment, on one audit, or on the catalog, as a document."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from bandana.audits.documents.audit import Audit
from bandana.audits.documents.benchmark import Benchmark
from bandana.audits.documents.fields import (
    AtLeast1,
    Count,
    Day,
    Document,
    Moment,
    NonNegative,
    Probability,
    Sha256,
    Size,
    Text,
)
from bandana.audits.documents.provenance import ReportProvenance


class Deployment(Document):
    """Declarations of the operator, apart from what was measured; null: nothing was declared."""

    curator: Annotated[Text, "Who holds the data and answers for the release."]
    purpose: Annotated[Text, "Purpose of the release."]
    data_source: Annotated[str | None, "Origin of the data; null: not declared."]
    license: Annotated[str | None, "License or legal basis of the use of the data; null: not declared."]
    people: Annotated[Size | None, "Number of people in the data; null: not declared."]
    region: Annotated[str | None, "Region of the data or of the law that applies; null: not declared."]
    sector: Annotated[str | None, "Industry that the data describe; null: not declared."]
    product: Annotated[str, "Kind of the released data product."]
    release_type: Annotated[Literal["one release", "many releases", None], "Number of releases; null: not declared."]
    unprotected: Annotated[list[str] | None, "Quantities published without protection; null: not declared."]
    approver: Annotated[str | None, "Who approved the release; null: not declared."]
    approved: Annotated[Day | None, "Day of the approval, YYYY-MM-DD; null: not declared."]
    retention: Annotated[str | None, "How long data and results are kept, and who reaches them; null: not declared."]
    expires: Annotated[Day | None, "Day after which the release must be reviewed again, YYYY-MM-DD; null: not declared."]


class People(Document):
    """Number of people that delta is judged against."""

    count: Annotated[Size | None, "Number of people; null: not known."]
    source: Annotated[str, "Where the number comes from, in words."]


class BookSummary(Document):
    """One book."""

    environment: Annotated[str, "Label of the environment whose data it protects."]
    name: Annotated[Text, "Name of the book."]
    head: Annotated[str | None, "Hash of its last entry, hexadecimal; null: not readable."]
    entries: Annotated[Size | None, "Number of entries; null: not readable."]
    earlier: Annotated[Count | None, "Runs that came before the book and are charged in it; null: not readable."]
    unprotected: Annotated[
        Count | None, "Results without noise that came before the book, which no budget covers; null: not readable."
    ]
    delta: Annotated[Probability | None, "Delta of the budget; null: pure privacy, or not readable."]
    budget: Annotated[NonNegative | None, "Epsilon that all runs together may spend, in nats; null: not readable."]
    spent: Annotated[
        NonNegative | None, "Epsilon that all runs together have spent, in nats; null: no finite number, or not readable."
    ]
    left: Annotated[NonNegative | None, "Epsilon of the largest run that still fits, in nats; null: not readable."]
    suite_spent: Annotated[
        NonNegative | None, "Epsilon of all runs of this suite together, in nats; null: no finite number, or not readable."
    ]
    most_costly_cell: Annotated[
        NonNegative | None,
        "Epsilon of all runs of the suite's most costly cell, in nats; null: no finite number, or not readable.",
    ]
    problem: Annotated[Text | None, "Why the book cannot be read; null: it was read."]


class Visits(Document):
    """Users who return, as declared; null: nothing is declared of them."""

    most: Annotated[Size, "Records of one user, at most."]
    apart: Annotated[Size, "Records between two of one user, at least."]


class Environment(Document):
    """One environment."""

    label: Annotated[Text, "Label in cells and audits, unique in the report."]
    name: Annotated[str, "Its name."]
    description: Annotated[str, "The data, for a reader who does not know them."]
    estimator: Annotated[str, "How an interaction is simulated from the data."]
    data: Annotated[
        Literal["simulated", "public", "private", "own"],
        "Whose data they are: simulated (nobody's), public (research data on real people), private, or own (the user's "
        "code makes them).",
    ]
    not_the_data_of: Annotated[
        list[str], "Budget books of other people, as is declared, whose rows are like those of the file."
    ]
    horizon: Annotated[Size, "Number of rounds (episodes)."]
    unit: Annotated[Literal["rounds", "episodes"], "Name of a user's interaction, in the plural."]
    actions: Annotated[list[str], "Names of the actions."]
    means: Annotated[
        list[float],
        "Mean reward of each action, in units of reward; empty: unknown, or withheld because the data are private.",
    ]
    visits: Visits | None


class Regression(Document):
    """One number in both runs."""

    label: Annotated[str, "Cell or audit."]
    quantity: Annotated[str, "Name of the number."]
    before: Annotated[float | str | None, "Earlier value; null: none."]
    now: Annotated[float | str | None, "Current value; null: none."]
    is_worse: Annotated[bool, "Whether this is a regression."]
    text: Annotated[str, "Rule of the decision."]


class Regressions(Document):
    """Comparison with an earlier run that the spec names; null: none is named."""

    baseline: Annotated[str, "The earlier run, in words."]
    rows: Annotated[list[Regression], "Compared numbers."]


class RelatedReport(Document):
    """One report."""

    label: Annotated[Text, "Label of its audit, or its title."]
    path: Annotated[
        str,
        Field(pattern=r"^(\.\./)?([A-Za-z0-9_-][A-Za-z0-9._-]*/)*[A-Za-z0-9_-][A-Za-z0-9._-]*$"),
        "Path relative to this report's folder.",
    ]


class EvidenceFile(Document):
    """One file."""

    path: Annotated[str, "Path inside the evidence folder."]
    sha256: Annotated[Sha256, "Its SHA-256, hexadecimal."]
    numbers: Annotated[Sha256, "SHA-256 of its arrays and description without its provenance, hexadecimal."]


class Evidence(Document):
    """Files behind the numbers."""

    sha256: Annotated[Sha256, "SHA-256 over the hashes of all files, hexadecimal."]
    numbers: Annotated[
        Sha256, "SHA-256 over the content of all files without their provenance: equal for two runs with the same numbers."
    ]
    files: Annotated[list[EvidenceFile], "The files."]


class Report(Document):
    """Content of a report on an experiment, on one audit, or on the catalog."""

    schema: Annotated[Literal["bandana/report/12"], "Version of this format."]
    kind: Annotated[
        Literal["experiment", "audit", "catalog"], "Subject of the report: an experiment, one audit, or the whole catalog."
    ]
    title: Annotated[Text, "Title of the report."]
    description: Annotated[str, "What is released or shown, in one line; empty: not stated."]
    suite: Annotated[Text, "Name of the suite."]
    created: Annotated[
        Moment | None, "Time at which the last of its results was computed, ISO 8601 with offset; null: not recorded."
    ]
    deployment: Deployment | None
    people: People
    books: Annotated[
        list[BookSummary], "Budget books of private data, as they were when the report was made; empty: the spec names none."
    ]
    environments: Annotated[list[Environment], AtLeast1, "Environments, the sources of the data."]
    audits: Annotated[list[Audit], "The audits; may be empty."]
    benchmark: Benchmark | None
    regressions: Regressions | None
    related: Annotated[list[RelatedReport], "Related reports."]
    provenance: ReportProvenance
    seeds: Annotated[dict[str, object], "Seeds and how they are derived."]
    spec: Annotated[str, "The specification that was run, as YAML."]
    commands: Annotated[list[str], "Commands that reproduce the report."]
    evidence: Evidence
