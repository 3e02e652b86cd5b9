"""What `bandana verify` shows: each number that evidence, a report or a bundle states beside the recomputed one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.table import Table

from bandana.audits.contents import numbers_sha256
from bandana.audits.evidence import Line, UnusableEvidence, Verification, one_file, read, verify
from bandana.audits.evidence.bundle import Bundle, is_bundle, read_bundle
from bandana.audits.evidence.report import Checked, check_report, read_report
from bandana.audits.evidence.standalone import check_bundle, of_report, unpacked
from bandana.audits.reporting import origin, render_html, render_pdf, validate
from bandana.audits.reporting.document import REPORT
from bandana.flows.keys import provenance
from bandana.flows.keys.checkout import sources
from bandana.flows.queries.catalog_words import with_catalog
from bandana.flows.queries.replay import Replayed, replayed
from bandana.flows.spec.mistakes import SpecError, printable, shortened
from bandana.flows.spec.spec import Spec, load_spec, parse_spec
from bandana.flows.suites.bundle import LOCK, SPEC_FILES, locked

WIDTH = 150
_DRAWS = ("jinja2", "matplotlib", "typst")


@dataclass(frozen=True)
class Request:
    """What a user asks for; each field is an option of `bandana verify`.

    Attributes:
      path: an evidence file, the JSON file of a report, or a bundle.
      replay: how many units are run again, such as `5` or `1%`; None: none.
      spec: the experiment, for a replay; None: the one that a report quotes.
      key: public key that a bundle must be signed with.
    """

    path: Path
    replay: str | None = None
    spec: Path | None = None
    key: Path | None = None


@dataclass(frozen=True)
class Answer:
    """What was found.

    Attributes:
      found: all lines.
      again: what was run again; None where nothing was.
      notes: how the evidence came to be.
    """

    found: Verification
    again: Replayed | None
    notes: tuple[str, ...]


def check(request: Request) -> Answer:
    """Recomputes an evidence file, a report or a bundle.

    Raises:
      SpecError: nothing can be recomputed from it, or the request is wrong.
    """
    if request.spec is not None and request.replay is None:
        raise SpecError("--spec: only with --replay")
    with _mistakes(request.path):
        if is_bundle(request.path):
            return _check_bundle(request)
        if request.key is not None:
            raise SpecError("--key: only a bundle is signed")
        if request.path.suffix == ".json":
            return _check_report(request, request.path, "report")[0]
        found = _check_evidence(request.path)
        spec = None if request.spec is None else load_spec(request.spec)
        again = None if request.replay is None else replayed([read(request.path).outcome], request.replay, spec)
        return Answer(_joined(found, again), again, tuple(told(request.path)))


@contextmanager
def _mistakes(path: Path) -> Iterator[None]:
    """A file that holds other kinds of values than its readers expect is the user's mistake, as a damaged one is."""
    try:
        yield
    except SpecError:
        raise
    except UnusableEvidence as error:
        raise SpecError(_in_a_line(error)) from error
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise SpecError(f"{path}: cannot be used: {type(error).__name__}: {_in_a_line(error)}") from error


def _in_a_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _check_evidence(path: Path) -> Verification:
    return with_catalog(verify(path), read(path).outcome)


def _check_report(request: Request, path: Path, kind: str) -> tuple[Answer, Checked, dict[str, Any]]:
    """The answer, what it was made of, and the report's document."""
    document = read_report(path)
    checked = check_report(path, document, _check_evidence)
    checked = replace(checked, lines=(_check_form(document), *checked.lines))
    found, again = of_report(kind, document, checked), None
    if request.replay is not None:
        outcomes = [read(place).outcome for place in checked.evidence.values()]
        again = replayed(outcomes, request.replay, _spec(request, document, path.parent))
    return Answer(_joined(found, again), again, ()), checked, document


def _check_form(document: dict[str, Any]) -> Line:
    """Whether a report of this version has its form, and no field contradicts another."""
    if document["schema"] != REPORT:
        return Line("report: form", document["schema"], f"this version knows {REPORT}", None)
    try:
        validate(document)
    except ValueError as error:
        return Line("report: form", document["schema"], str(error), False)
    return Line("report: form", document["schema"], "as its schema says", True)


def _check_bundle(request: Request) -> Answer:
    bundle = read_bundle(request.path)
    try:
        key = None if request.key is None else request.key.read_bytes()
    except OSError as error:
        raise SpecError(f"--key: {request.key}: cannot be read: {error.strerror}") from error
    with unpacked(bundle) as report:
        answer, checked, document = _check_report(request, report, "bundle")
    lines = (*check_bundle(bundle, checked, key), *_check_derived(bundle, document), *answer.found.lines)
    signature = next(line for line in lines if line.what == "signature")
    return replace(answer, found=replace(answer.found, lines=lines), notes=(f"signature {signature.recomputed}",))


def _check_derived(bundle: Bundle, document: dict[str, Any]) -> list[Line]:
    """Files that follow from the report and from this version, beside those of the bundle.

    Another version of this product, or of what draws, has other pages: what differs is then shown and not counted.
    """
    lock = bundle.files.get(LOCK, b"").decode("utf-8", "replace").split("\n")
    is_same_version = bundle.predicate.get("code", {}).get("sources") == sources()
    is_same_version &= all(line in lock for line in locked() if line.partition("==")[0] in _DRAWS)
    lines, derived = [], dict(_derived(document))
    for name in ("report.html", "report.pdf"):
        if name in bundle.files and name not in derived:
            lines.append(Line(name, f"{len(bundle.files[name])} bytes", "not compared: this version cannot draw it", None))
    for name, again in derived.items():
        if name in bundle.files:
            is_equal = bundle.files[name] == again
            words = "as report.json gives it" if is_equal else "is not what report.json and this version give"
            is_ok = is_equal or (False if is_same_version else None)
            lines.append(Line(name, f"{len(bundle.files[name])} bytes", words, is_ok))
    return lines


def _derived(document: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Name -> content that a bundle packed by this version has."""
    yield from ((name, document["spec"].encode()) for name in SPEC_FILES)
    yield one_file.NAME, one_file.source().encode()
    with suppress(ValueError):  # the line on its form says so
        yield "report.html", render_html(document).encode()
        yield "report.pdf", render_pdf(document)


def _spec(request: Request, document: dict[str, Any], folder: Path) -> Spec | None:
    """The experiment that a report is of; None where it quotes none."""
    if request.spec is not None:
        return load_spec(request.spec)
    try:
        return parse_spec(document["spec"], "spec", folder)
    except SpecError:
        if document["kind"] == "experiment":
            raise
        return None


def _joined(found: Verification, again: Replayed | None) -> Verification:
    return found if again is None else replace(found, lines=(*found.lines, *again.lines))


def render(verification: Verification) -> Table:
    """The table of all lines."""
    table = Table("what", "stated", "recomputed", "ok")
    for line in verification.lines:
        told = (shortened(printable(str(words)), 200) for words in (line.what, line.stated, line.recomputed))
        table.add_row(*told, {True: "yes", False: "NO", None: "-"}[line.is_ok])
    return table


def told(path: Path) -> list[str]:
    """How the evidence came to be, and the hash of its numbers, which are the same whoever computes them again.

    Raises:
      UnusableEvidence: see `bandana.audits.evidence.read`.
    """
    made = origin.lines(provenance.read(read(path).outcome.provenance))
    return [*made, f"numbers   SHA-256 {numbers_sha256(path)}, without the lines above"]


def for_machines(path: Path, answer: Answer) -> dict[str, Any]:
    """The verification in JSON's own types."""
    found, again = answer.found, answer.again
    return {
        "evidence": str(path),
        "is_verified": found.is_verified,
        "verdict": found.verdict,
        "subject": dict(found.subject),
        "claim": found.claim,
        "replayed": None if again is None else {name: getattr(again, name) for name in ("n_drawn", "n_units", "entropy")},
        "lines": [asdict(line) for line in found.lines],
    }
