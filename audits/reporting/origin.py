"""Provenance of a report's results: time, software, machine, code and user.

All of it comes from the document, which has what was stored with the results; the rendering machine adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from bandana.audits.documents.provenance import Blas, Installation, Maker, NotRecorded, ReportProvenance
from bandana.audits.reporting.blocks import Block, Cell, heading, lines_of, pair_rows, paragraph, table_block
from bandana.audits.reporting.kinds import Document
from bandana.audits.reporting.numbers import NONE, number

NOT_RECORDED = "not recorded"
_UNNAMED = "omitted"
_RECORDED = "These facts were recorded with each result when it was computed."
_SEVERAL = (
    "Results have different provenance: numbers of the same code may differ in their last digits between machines and "
    "versions, and those of different code by more."
)
_BELOW = "The appendix has the details, under “Provenance”."
_SHORT = 24
"""Longest fact, in characters, that a sentence shows."""


def time_of(moment: str) -> str:
    """Readable form of an ISO time, to the minute, with its offset."""
    time = datetime.fromisoformat(moment)
    offset = time.strftime("%z")
    return time.strftime("%Y-%m-%d %H:%M ") + ("UTC" if offset == "+0000" else f"UTC{offset[:3]}:{offset[3:5]}")


def computed(document: Document) -> str:
    """Time at which the results of a document were computed, for its head."""
    if document["created"] is None:
        return f"time {NOT_RECORDED}"
    made = dict(document).get("provenance")
    began = made["began"] if isinstance(made, dict) else None
    return f"computed {_between(began or document['created'], document['created'])}"


def _between(began: str, ended: str) -> str:
    """Time span in words, to the minute; one moment if both are the same."""
    first, last = (time_of(datetime.fromisoformat(moment).astimezone(UTC).isoformat()) for moment in (began, ended))
    if first == last:
        return first
    day, _ = first.split(" ", 1)
    same_day = last.startswith(f"{day} ")
    return f"{first.removesuffix(' UTC')} to {last.removeprefix(f'{day} ') if same_day else last}"


def facts(provenance: ReportProvenance) -> list[tuple[str, list[str]]]:
    """Every recorded fact of provenance except times and counts, with its different values.

    Args:
      provenance: the field of a report document.
    """
    makers = [dict(_facts(maker)) for maker in provenance["makers"]]
    terms = dict.fromkeys(term for maker in makers for term in maker)
    return [(term, sorted({maker.get(term, NOT_RECORDED) for maker in makers})) for term in terms]


def _facts(maker: Installation) -> Iterator[tuple[str, str]]:
    yield from maker["versions"].items()
    yield "system", maker["system"]
    yield "processor", maker["processor"]
    yield "compiled for", maker["target"]
    yield "instruction sets", ", ".join(maker["features"]) or NOT_RECORDED
    libraries = [_library(item) for item in maker["blas"]]
    yield "BLAS", "; ".join(libraries) or NOT_RECORDED
    yield "user", maker["user"] or _UNNAMED
    yield "host", maker["host"] or _UNNAMED
    yield "sources sha256", maker["sources"]
    yield "git commit", commit_of(maker)


def _library(item: Blas) -> str:
    threads = item["threads"]
    return f"{item['library']}, kernels {item['kernel']}, {threads} thread{'' if threads == 1 else 's'}"


def commit_of(maker: Installation) -> str:
    """Git commit of an installation, and whether its sources match it."""
    if maker["commit"] is None:
        return "none: the sources are not in a checkout"
    return f"{maker['commit']}, {'clean' if maker['is_clean'] else 'changed: the sources differ from the commit'}"


def lines(record: Installation | None) -> list[str]:
    """Provenance of one result, for a terminal.

    Args:
      record: as stored with a result, checked; None if nothing was recorded.
    """
    if record is None:
        return [f"computed  {NOT_RECORDED}"]
    who = [word for word in (record["user"], record["host"]) if word is not None]
    by = f" by {' on '.join(who)}" if who else ""
    known = dict(_facts(record))
    return [
        f"computed  {_between(record['began'], record['ended'])}{by}",
        f"with      {', '.join(f'{name} {version}' for name, version in record['versions'].items())}",
        f"on        {known['system']}; {known['processor']} ({known['compiled for']}); {known['BLAS']}",
        f"from      git commit {known['git commit']}",
    ]


def section(provenance: ReportProvenance) -> list[Block]:
    """Report section on the provenance of its results.

    Args:
      provenance: the field of a report document.
    """
    makers, recorded, unknown = provenance["makers"], facts(provenance), _counted(provenance["not_recorded"])
    blocks: list[Block] = [heading("Provenance")]
    if not makers:
        return [*blocks, paragraph(f"The provenance is {NOT_RECORDED}: {unknown or 'there are no results'}.")]
    shared = {term: values[0] for term, values in recorded if len(values) == 1}
    differing = [term for term, values in recorded if len(values) > 1]
    if len(makers) == 1 and not unknown:
        what = f"{_counted(makers[0])}, computed {_between(makers[0]['began'], makers[0]['ended'])}"
        blocks.append(paragraph(f"One installation on one machine computed all results: {what}. {_RECORDED}"))
    else:
        rows = [_row(place, maker, differing) for place, maker in enumerate(makers, start=1)]
        if unknown:
            rows.append(["unknown", unknown, NOT_RECORDED, NOT_RECORDED])
        columns = ["No.", "Results", "Computed", "Differences"]
        blocks.append(paragraph(f"{_SEVERAL} {_RECORDED}"))
        blocks.append(table_block("Results by provenance", columns, rows, widths=[0.8, 1.2, 1.6, 4]))
    if shared:
        caption = "Shared by all results" if differing else "Recorded with the results"
        columns = ["Fact", "Value"]
        blocks.append(table_block(caption, columns, pair_rows(shared), narrow=True, widths=[1, 3]))
    return blocks


def caveat(provenance: ReportProvenance) -> list[Block]:
    """Note for the head of a report whose results have different provenance."""
    unknown = _counted(provenance["not_recorded"])
    differing = [(term, values) for term, values in facts(provenance) if len(values) > 1]
    terms = [f"{t} ({', '.join(values)})" if max(map(len, values)) <= _SHORT else t for t, values in differing]
    parts = [f"they differ in {', '.join(terms)}"] if terms else []
    parts += [f"the provenance of {unknown} is {NOT_RECORDED}"] if unknown else []
    if not parts:
        return []
    return [paragraph(f"Results of this report have different provenance: {', and '.join(parts)}. {_BELOW}")]


def _row(place: int, maker: Maker, differing: list[str]) -> list[Cell]:
    mine = dict(_facts(maker))
    differences = [f"{term}: {mine.get(term, NOT_RECORDED)}" for term in differing] or [NONE]
    return [str(place), _counted(maker), _between(maker["began"], maker["ended"]), lines_of(differences)]


def _counted(results: Maker | NotRecorded) -> str:
    """Number of blocks and audits in words."""
    named = [(results[kind], kind if results[kind] != 1 else kind[:-1]) for kind in ("blocks", "audits") if results[kind]]
    return ", ".join(f"{number(count)} {kind}" for count, kind in named)
