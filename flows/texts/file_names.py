"""Names of files that are made from names that people give: they can be typed, linked to, and stored everywhere."""

from __future__ import annotations

import hashlib
import re

_PLAIN = re.compile(r"[A-Za-z0-9._+ =-]*")
_LENGTH = 120  # file systems take 255 bytes, with an ending


def file_name(text: str) -> str:
    """A name in letters, digits and `._+-` of ASCII; another one for another text, but for blanks, `=` and `-`.

    Plain text keeps its letters, with `-` for blanks and `=`. A hash
    distinguishes names in which anything else was replaced or cut off.

    Args:
      text: such as the name of a cell, which may hold the name of a user's file.
    """
    if _PLAIN.fullmatch(text) and len(text) <= _LENGTH:
        return text.replace(" ", "-").replace("=", "-")
    safe = re.sub(r"[^A-Za-z0-9._+]+", "-", text)[:_LENGTH].strip("-")
    return f"{safe}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
