"""Packs a report with everything behind it into one archive, with a manifest that may be signed; see `evidence.bundle`."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import distributions
from importlib.resources import files as files_of
from pathlib import Path
from string import Template

from bandana.audits.documents.report import Report
from bandana.audits.evidence import UnusableEvidence
from bandana.audits.names import titles_of, with_titles
from bandana.audits.reporting.document import kind_of
from bandana.flows.annexes.compliance import evidence
from bandana.flows.annexes.compliance.evidence import one_file
from bandana.flows.annexes.compliance.evidence.bundle import README, REPORT, archive_of, statement_of
from bandana.flows.annexes.compliance.evidence.report import find, read_report
from bandana.flows.annexes.compliance.evidence.signature import PUBLIC_KEY, KeyFileError, public_pem, read_private, sign
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import write_whole
from bandana.flows.keys import checkout
from bandana.flows.texts.json_text import JsonObject
from bandana.flows.texts.mistakes import SpecError

ENDING = ".bundle.zip"
LOCK = "requirements.lock"
SPEC_FILES = ("spec.yaml", "spec.txt")
"""Request: the spec of an experiment; else the labels of a catalog, or the source of a user's algorithm."""


def pack(report: Path, target: Path, key: Path | None = None) -> JsonObject:
    """Writes a bundle.

    Args:
      report: the JSON file of a report; its other formats lie beside it, its evidence where it says.
      target: the file to write.
      key: private key to sign with; None leaves the bundle unsigned.

    Returns:
      `files`: how many there are; `signed`: whether there is a signature.

    Raises:
      SpecError: no report, evidence that is missing, or a key that cannot be read.
    """
    try:
        document = read_report(report)
        signer = None if key is None else read_private(key)
    except UnusableEvidence as error:
        raise SpecError(str(error)) from error
    except KeyFileError as error:
        raise SpecError(f"--key: {error}") from error
    files = _files(report, document)
    if signer is not None:
        files[PUBLIC_KEY] = public_pem(signer.public_key())
    manifest = statement_of(files, _predicate(document))
    signature = None if signer is None else sign(manifest, signer)
    write_whole(target, archive_of(files, manifest, signature))
    return {"files": len(files), "signed": signer is not None}


def report_of(suite: str, folder: DataFolder) -> Path:
    """The JSON file of a suite's report, by the suite's name or by its own path.

    Raises:
      SpecError: there is none.
    """
    place = Path(suite) if suite.endswith(".json") else folder.suite(suite) / "report.json"
    if not place.is_file():
        raise SpecError(f"{suite}: there is no report at {place}: run `bandana report` with json among its formats first")
    return place


def _files(report: Path, document: Report) -> dict[str, bytes]:
    """Name in the bundle -> content."""
    files = {REPORT: report.read_bytes()}
    for kind in ("html", "pdf"):
        if (beside := report.with_suffix(f".{kind}")).is_file():
            files[f"report.{kind}"] = beside.read_bytes()
    if report.name == REPORT:
        files |= {f"audits/{path.name}": path.read_bytes() for path in sorted((report.parent / "audits").glob("*.*"))}
    for file in document["evidence"]["files"]:
        place = find(report, file["path"])
        if place is None:
            raise SpecError(f"{report}: {file['path']}, which it lists, is not there: run the suite again")
        files[file["path"]] = place.read_bytes()
    files[SPEC_FILES[document["kind"] != "experiment"]] = document["spec"].encode()
    files[LOCK] = ("\n".join(locked()) + "\n").encode()
    files[one_file.NAME] = one_file.source().encode()
    return {**files, README: readme(document)}


def readme(document: Report) -> bytes:
    """The page for a reviewer that a bundle opens with: the answer, how to check it, and what signing proves."""
    text = Template((files_of(evidence) / "bundle-readme.md").read_text(encoding="utf-8"))
    kind, document = kind_of(document), with_titles(document, titles_of(document))
    words = {"title": document["title"], "answer": kind.headline(document)[1], "detail": kind.detail(document)}
    return text.substitute({name: " ".join(part.split()) for name, part in words.items()}).encode()


def _predicate(document: Report) -> JsonObject:
    """Statement of the manifest beside hashes: what is claimed, what was found, and by which code it was packed."""
    code = checkout.checkout()
    return {
        "report": REPORT,
        "title": document["title"],
        "suite": document["suite"],
        "kind": document["kind"],
        "computed": document["created"],
        "packed": datetime.now(UTC).isoformat(timespec="seconds"),
        "audits": [
            {"label": entry["label"], "claim": entry["claim"]["statement"], "verdict": entry["verdict"]}
            for entry in document["audits"]
        ],
        "code": {
            "sources": checkout.sources(),
            "commit": None if code is None else code.commit,
            "is_clean": None if code is None else code.is_clean,
        },
    }


def locked() -> list[str]:
    """Every installed distribution with its version, as `pip install -r` reads it, in alphabetical order."""
    return sorted({f"{each.metadata['Name']}=={each.version}".lower() for each in distributions() if each.metadata["Name"]})
