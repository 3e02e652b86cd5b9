"""Signatures of bundles: ed25519 keys of the user's, in PEM files, by the library `cryptography`."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from bandana.audits.evidence.archive import UnusableEvidence
from bandana.flows.annexes.compliance.evidence.bundle import Bundle, envelope, payload_of, to_sign
from bandana.flows.annexes.compliance.evidence.lines import Line

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

PUBLIC_KEY = "signer.pub"
"""Name in a bundle of the key that it was signed with."""


class KeyFileError(ValueError):
    """A key that cannot be read or written; the message names the file and says why."""


def new_key(path: Path) -> tuple[Path, str]:
    """Writes a new private key, which its owner alone can read, and its public key beside it.

    Args:
      path: of the private key; nothing is overwritten.

    Returns:
      the file of the public key, `path` and `.pub`, and the key's name.

    Raises:
      KeyFileError: a file is there already, or cannot be written.
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key, public = Ed25519PrivateKey.generate(), path.with_name(f"{path.name}.pub")
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )  # fmt: skip
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for place, content, mode in ((path, secret, 0o600), (public, public_pem(key.public_key()), 0o644)):
            with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                file.write(content)
    except OSError as error:
        raise KeyFileError(f"{error.filename or path}: the key cannot be written: {error.strerror or error}") from error
    return public, key_id(key.public_key())


def read_private(path: Path) -> Ed25519PrivateKey:
    """A private key from its PEM file.

    Raises:
      KeyFileError: no such file, or no ed25519 key without a password.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        raise KeyFileError(f"{path}: is no private key that can be read: {error}") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise KeyFileError(f"{path}: must be an ed25519 key, as `bandana key new` writes one")
    return key


def read_public(content: bytes, name: str) -> Ed25519PublicKey:
    """A public key from PEM.

    Raises:
      KeyFileError: it is none, or of another kind; the message begins with `name`.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(content)
    except (ValueError, TypeError) as error:
        raise KeyFileError(f"{name}: is no public key that can be read: {error}") from error
    if not isinstance(key, Ed25519PublicKey):
        raise KeyFileError(f"{name}: must be an ed25519 key, as `bandana key new` writes one")
    return key


def public_pem(key: Ed25519PublicKey) -> bytes:
    """A public key as PEM."""
    from cryptography.hazmat.primitives import serialization

    return bytes(key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo))


def key_id(key: Ed25519PublicKey) -> str:
    """Name of a key: `ed25519:` and the SHA-256 of its 32 bytes."""
    from cryptography.hazmat.primitives import serialization

    raw = key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return f"ed25519:{hashlib.sha256(raw).hexdigest()}"


def sign(manifest: bytes, key: Ed25519PrivateKey) -> bytes:
    """The DSSE envelope of a manifest, signed."""
    return envelope(manifest, key_id(key.public_key()), key.sign(to_sign(manifest)))


def check_signature(bundle: Bundle, expected: bytes | None = None) -> list[Line]:
    """Lines on who signed a bundle.

    Args:
      bundle: what was read.
      expected: PEM of the public key that it must be signed with; None: the one that the bundle brings, which shows that
        all of it was signed together, and not by whom.

    Raises:
      UnusableEvidence: an expected key that is none.
    """
    if bundle.signature is None:
        was_signed = PUBLIC_KEY in bundle.files
        words = "the signature was removed" if was_signed else "this bundle is unsigned: nobody answers for it"
        is_ok = False if was_signed or expected is not None else None
        return [Line("signature", "none", words, is_ok, is_claimed=True)]
    try:
        from cryptography.exceptions import InvalidSignature
    except ImportError:
        return [Line("signature", "signed", "not checked: that needs the package cryptography", None)]
    if expected is not None:
        try:
            wanted = read_public(expected, "--key")
        except KeyFileError as error:
            raise UnusableEvidence(str(error)) from error
    try:
        key = read_public(bundle.files[PUBLIC_KEY], PUBLIC_KEY) if expected is None else wanted
        payload, signed = payload_of(bundle.signature)
        (name, signature), *_ = signed
    except (KeyError, ValueError, TypeError) as error:
        return [Line("signature", "signed", f"cannot be read: {error}", False)]
    mine = key_id(key)
    if name != mine:
        return [Line("signature", f"by {name[:24]}...", f"is of another key than {mine[:24]}...", False)]
    if payload != bundle.manifest:
        return [Line("signature", f"by {name[:24]}...", "is of another manifest", False)]
    try:
        key.verify(signature, to_sign(payload))
    except InvalidSignature:
        return [Line("signature", f"by {name[:24]}...", "does not fit the manifest", False)]
    words = "of the given key" if expected is not None else f"of the bundle's own key {mine}; --key says whose it must be"
    return [Line("signature", f"by {name[:24]}...", words, True)]
