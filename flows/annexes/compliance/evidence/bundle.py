"""A bundle: a report with everything behind it in one archive, and a manifest that names each file's SHA-256.

The manifest is an in-toto statement (https://in-toto.io/Statement/v1), and its signature a DSSE envelope, so that tools for
supply chains read both. The archive's last 64 bytes are the SHA-256 of all bytes before, as in an evidence file. Hashes show
that nothing was changed since it was packed; the signature shows who packed it; the numbers show whether it is true.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from bandana.audits.evidence.archive import UnusableEvidence
from bandana.flows.annexes.compliance.evidence.lines import Line

README, MANIFEST, SIGNATURE, REPORT = "README.md", "manifest.json", "signature.json", "report.json"
STATEMENT, PREDICATE = "https://in-toto.io/Statement/v1", "urn:bandana:attestation:bundle:v1"
PAYLOAD = "application/vnd.in-toto+json"
_DIGITS, _MOST_BYTES, _MOST_FILES, _MOST_OF_TEXT, _LONGEST_NAME = 64, 4 << 30, 20_000, 256 << 20, 200
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""Time of every file in the archive: the same content gives the same bytes."""


@dataclass(frozen=True)
class Bundle:
    """Content of a bundle.

    Attributes:
      files: name -> content, without manifest and signature.
      manifest: as it is written.
      signature: the DSSE envelope; None where the bundle is unsigned.
      sha256: of the archive, as it states it.
      sha256_found: of the bytes that are there.
    """

    files: Mapping[str, bytes]
    manifest: bytes
    signature: Mapping[str, Any] | None
    sha256: str
    sha256_found: str

    @property
    def statement(self) -> dict[str, Any]:
        """The manifest, read."""
        return dict(json.loads(self.manifest))

    @property
    def predicate(self) -> dict[str, Any]:
        """Statement of the manifest on the bundle beside its files."""
        predicate = self.statement.get("predicate")
        return predicate if isinstance(predicate, dict) else {}


def statement_of(files: Mapping[str, bytes], predicate: Mapping[str, Any]) -> bytes:
    """The manifest of these files: an in-toto statement."""
    subject = [{"name": name, "digest": {"sha256": _sha256(files[name])}} for name in sorted(files)]
    statement = {"_type": STATEMENT, "subject": subject, "predicateType": PREDICATE, "predicate": predicate}
    return (json.dumps(statement, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def to_sign(manifest: bytes) -> bytes:
    """Bytes that a signature covers: DSSE's pre-authentication encoding of the manifest."""
    return b" ".join(
        [b"DSSEv1", *(part for text in (PAYLOAD.encode(), manifest) for part in (str(len(text)).encode(), text))]
    )


def envelope(manifest: bytes, key_id: str, signature: bytes) -> bytes:
    """The DSSE envelope of a signed manifest."""
    signed = {"keyid": key_id, "sig": base64.b64encode(signature).decode()}
    envelope = {"payloadType": PAYLOAD, "payload": base64.b64encode(manifest).decode(), "signatures": [signed]}
    return (json.dumps(envelope, indent=1, sort_keys=True) + "\n").encode()


def archive_of(files: Mapping[str, bytes], manifest: bytes, signature: bytes | None) -> bytes:
    """The archive: README, manifest and signature first, then the files, and the SHA-256 of all that at the end."""
    buffer = io.BytesIO()
    ordered = {name: files[name] for name in (README,) if name in files}
    ordered |= {MANIFEST: manifest, **({} if signature is None else {SIGNATURE: signature})}
    ordered |= {name: files[name] for name in sorted(files)}
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in ordered.items():
            item = zipfile.ZipInfo(name, _EPOCH)
            item.compress_type = zipfile.ZIP_STORED if name.endswith((".npz", ".pdf")) else zipfile.ZIP_DEFLATED
            archive.writestr(item, content)
        archive.comment = b"0" * _DIGITS
    content = buffer.getvalue()[:-_DIGITS]
    return content + _sha256(content).encode()


def is_bundle(path: Path) -> bool:
    """True if a file is an archive that holds a manifest, or says so."""
    try:
        with zipfile.ZipFile(path) as archive:
            return MANIFEST in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False


def read_bundle(path: Path) -> Bundle:
    """Reads a bundle.

    Raises:
      UnusableEvidence: no such file, no bundle, or damaged so that it cannot be read.
    """
    try:
        content = path.read_bytes()
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _check_names([item.filename for item in archive.infolist()])
            _check_sizes(archive.infolist())
            files = {name: archive.read(name) for name in archive.namelist()}
        manifest, signature = files.pop(MANIFEST), files.pop(SIGNATURE, None)
        tail = end if (end := content[-_DIGITS:].decode("ascii", "replace")).isalnum() else "none at its end"
        read = Bundle(files, manifest, None if signature is None else _object(signature), tail, _sha256(content[:-_DIGITS]))
        _check_statement(read.statement)
    except Exception as error:  # whatever a damaged archive makes its readers say, such as RecursionError
        what = f"lacks {error}" if isinstance(error, KeyError) else str(error)
        raise UnusableEvidence(f"{path}: cannot be read as a bundle: {what}") from error
    return read


def check_files(bundle: Bundle) -> list[Line]:
    """Lines on the archive and on each file that the manifest names, or should name."""
    hashes = [f"{digits[:16]}{'...' * digits.isalnum()}" for digits in (bundle.sha256, bundle.sha256_found)]
    lines = [Line("SHA-256 of the bundle", hashes[0], hashes[1], bundle.sha256 == bundle.sha256_found)]
    listed = {item["name"]: item["digest"]["sha256"] for item in bundle.statement["subject"]}
    for name in sorted({*listed, *bundle.files}):
        stated = f"{listed[name][:16]}..." if name in listed else "not in the manifest"
        digest = _sha256(bundle.files[name]) if name in bundle.files else ""
        lines.append(Line(f"file {name}", stated, f"{digest[:16]}..." if digest else "missing", listed.get(name) == digest))
    return lines


def payload_of(signature: Mapping[str, Any]) -> tuple[bytes, list[tuple[str, bytes]]]:
    """The signed bytes of an envelope, and its signatures with the names of their keys.

    Raises:
      ValueError, KeyError, TypeError: it is no envelope.
    """
    signed = [(str(item["keyid"]), base64.b64decode(item["sig"], validate=True)) for item in signature["signatures"]]
    if signature["payloadType"] != PAYLOAD:
        raise ValueError(f"payloadType is {signature['payloadType']!r}")
    return base64.b64decode(signature["payload"], validate=True), signed


def _check_statement(statement: Mapping[str, Any]) -> None:
    if statement["_type"] != STATEMENT or statement["predicateType"] != PREDICATE:
        raise ValueError(f"its manifest is a {statement['predicateType']!r}, this version reads {PREDICATE!r}")
    for item in statement["subject"]:
        if not isinstance(item["name"], str) or not isinstance(item["digest"]["sha256"], str):
            raise ValueError("its manifest names a file without its SHA-256")


def _object(content: bytes) -> dict[str, Any]:
    tree = json.loads(content)
    if not isinstance(tree, dict):
        raise ValueError("its signature is no envelope")
    return tree


def _check_sizes(items: Sequence[zipfile.ZipInfo]) -> None:
    """Limits on what is unpacked, before anything is; ValueError for too many files or bytes."""
    if len(items) > _MOST_FILES:
        raise ValueError(f"it holds {len(items):,} files, more than {_MOST_FILES:,}")
    if (size := sum(item.file_size for item in items)) > _MOST_BYTES:
        raise ValueError(f"it unpacks to {size:,} bytes, more than {_MOST_BYTES:,}")
    for item in items:
        if item.file_size > _MOST_OF_TEXT and not item.filename.endswith(".npz"):
            raise ValueError(f"{item.filename} has {item.file_size:,} bytes, more than {_MOST_OF_TEXT:,}")


def _check_names(names: Sequence[str]) -> None:
    """Names that can lie side by side below one folder, without regard to case; ValueError for others."""
    if not all(is_plain(name) for name in names):
        raise ValueError("its names of files are not plain and different")
    folded = [name.casefold() for name in names]
    folders = {str(folder) for name in folded for folder in PurePosixPath(name).parents}
    if len({*folded}) < len(folded) or folders & {*folded}:
        raise ValueError("its names of files are not plain and different")


def is_plain(name: str) -> bool:
    """True if a name stays below the folder that it is unpacked into."""
    path = PurePosixPath(name)
    is_below = not path.is_absolute() and ".." not in path.parts and name == str(path) != "."
    return is_below and name.isprintable() and not {*name} & {*"\\:"} and len(name) <= _LONGEST_NAME


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
