"""Encryption at rest of what is sensitive in a store: AES-256 in GCM mode, with a key that is kept elsewhere."""

from __future__ import annotations

import base64
import hmac
import os
import struct
from hashlib import sha256

import numpy as np

from bandana.algorithms.protocol import FloatArray
from bandana.flows.annexes.live.store import StoreError

KEY = "BANDANA_LIVE_KEY"
"""Environment variable with the key of the service."""
_NONCE = 12
_BYTES = 32
_PLAIN, _SEALED = b"\x00", b"\x01"
"""First byte of a blob."""


def new_key() -> str:
    """A key for `bandana.live.open(key=...)`; whoever loses it loses all rewards that have not entered."""
    return base64.urlsafe_b64encode(os.urandom(_BYTES)).decode()


class Secrecy:
    """Encrypts and decrypts blobs; without a key they are kept as they are.

    Args:
      key: from `new_key`; None: nothing is encrypted.

    Raises:
      StoreError: it is no such key.
    """

    def __init__(self, key: str | None) -> None:
        self.is_encrypted = key is not None
        self._key = b""
        if key is not None:
            try:
                self._key = base64.urlsafe_b64decode(key)
            except ValueError:
                self._key = b""
            if len(self._key) != _BYTES:
                raise StoreError("key: it must be one that `bandana.live.new_key()` made, 32 bytes in base64")

    def seal(self, content: bytes, place: str) -> bytes:
        """The blob as it is stored; `place` names row and column, so that no blob is read in the place of another."""
        if not self.is_encrypted:
            return _PLAIN + content
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = os.urandom(_NONCE)
        sealed: bytes = AESGCM(self._key).encrypt(nonce, content, place.encode())
        return _SEALED + nonce + sealed

    def open(self, blob: bytes, place: str) -> bytes:
        """The content that `seal` was given.

        Raises:
          StoreError: the key is another one, or the blob was changed or moved.
        """
        mark, nonce, rest = bytes(blob[:1]), bytes(blob[1 : 1 + _NONCE]), bytes(blob[1 + _NONCE :])
        if not self.is_encrypted and mark == _PLAIN:
            return bytes(blob[1:])
        if self.is_encrypted != (mark == _SEALED):
            has = "encrypted: give its key" if mark == _SEALED else "not encrypted: it was created without a key"
            raise StoreError(f"{place} cannot be read: the store is {has}")
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            content: bytes = AESGCM(self._key).decrypt(nonce, rest, place.encode())
        except InvalidTag:
            raise StoreError(f"{place} cannot be read: the key is another one, or the store was changed") from None
        return content


def hashed(text: str, salt: bytes = b"") -> str:
    """Keyed hash of an id or a person's name, which is all that a store keeps of them."""
    return hmac.new(salt, text.encode(), sha256).hexdigest()


def packed(values: FloatArray | float | None) -> bytes:
    """Numbers as bytes; all of one length where their count is the same."""
    return b"" if values is None else np.asarray(values, dtype="<f8").tobytes()


def unpacked(content: bytes) -> FloatArray:
    """(n,) the numbers that `packed` wrote."""
    return np.frombuffer(content, "<f8").copy()


def number(content: bytes) -> float:
    """The one number that `packed` wrote."""
    return float(struct.unpack("<d", content)[0])
