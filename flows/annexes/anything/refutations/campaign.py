"""The arithmetic of the whole campaign: how its confidence is divided among its audits, and what all of them show.

The bounds of all audits hold together with the campaign's confidence: each is taken at a level of one minus it, divided by
the number of all audits in all folders (Bonferroni), whether one case is played or all. Neighbors, parameters and numbers of
runs are fixed in the cases beforehand, and each audit draws seeds of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bandana.audits.outcome import Verdict
from bandana.flows.annexes.anything.refutations.case import Case
from bandana.flows.texts.json_text import JsonObject

CONFIDENCE = 0.95
"""With which all bounds of the campaign hold together."""
FAILED = "NOT AUDITED"
"""In place of a verdict: the code did not run."""


def n_audits(cases: Mapping[str, Case]) -> int:
    """Audits of all cases."""
    return sum(len(case.planned) for case in cases.values())


def confidence_of_each(n: int, together: float = CONFIDENCE) -> float:
    """Confidence of one of n bounds, so that all hold together (Bonferroni).

    Raises:
      ValueError: there is no bound.
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n!r}")
    return 1 - (1 - together) / n


@dataclass(frozen=True)
class Coverage:
    """Mechanisms by what their audits show; the versions after a fix are left out.

    Attributes:
      libraries: number of libraries and papers.
      refuted: mechanisms of which an audit refuted the claim.
      kept: mechanisms of which no audit did, and each could have.
      open: the others: an audit could not have refuted the claim, or was not made.
      n_audits: all audits, those after a fix included.
    """

    libraries: int
    refuted: int
    kept: int
    open: int
    n_audits: int

    def __str__(self) -> str:
        rest = f", {self.open} open" if self.open else ""
        return (
            f"{self.refuted + self.kept + self.open} mechanisms of {self.libraries} libraries and papers: "
            f"{self.refuted} refuted, {self.kept} not refuted{rest}"
        )


def coverage_of(documents: Iterable[JsonObject]) -> Coverage:
    """Counts over the results of all cases.

    Args:
      documents: as `measured.json` holds them.
    """
    documents = list(documents)
    verdicts: dict[tuple[str, str], set[str]] = {}
    for document in documents:
        for entry in document["audits"]:
            if entry["role"] != "fixed":
                verdicts.setdefault((document["library"], entry["mechanism"]), set()).add(entry["verdict"])
    refuted = sum(Verdict.FAIL in seen for seen in verdicts.values())
    kept = sum(seen == {Verdict.NOT_REFUTED} for seen in verdicts.values())
    return Coverage(
        len({library for library, _ in verdicts}), refuted, kept, len(verdicts) - refuted - kept,
        sum(len(document["audits"]) for document in documents),
    )  # fmt: skip


def surprises(document: JsonObject) -> list[str]:
    """Audits of a case that contradict what the case says: a defect that is not refuted, a fix that is, or none made."""
    wrong = []
    for entry in document["audits"]:
        is_refuted, role = entry["verdict"] == Verdict.FAIL, entry["role"]
        if entry["verdict"] == FAILED or (role == "defect" and not is_refuted) or (role == "fixed" and is_refuted):
            wrong.append(f"{entry['mechanism']} ({role}): {entry['verdict']}; {'; '.join(entry['reasons'])}")
    return wrong
