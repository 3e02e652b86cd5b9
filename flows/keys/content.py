"""Hashes of content: equal values have equal hashes, on every machine."""

from __future__ import annotations

import hashlib
import json


def canonical(value: object) -> str:
    """JSON with sorted keys and no spaces: equal values have equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)


def content_key(value: object) -> str:
    """SHA-256 of the canonical JSON, 64 hex digits."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()
