"""Memory that was freed stays with the process: arrays that come and go by the thousand fault no page anew."""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's `mallopt`."""
_MOST_KEPT, _LARGEST_KEPT = 1 << 30, 1 << 25
"""Bytes: at most so much free memory is kept; larger arrays than the second, which is the most glibc takes, are not."""


def keep_freed() -> None:
    """Tells the C library to keep freed memory; one that is not glibc goes on as it does."""
    if (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        mallopt(_MMAP_THRESHOLD, _LARGEST_KEPT)
        mallopt(_TRIM_THRESHOLD, _MOST_KEPT)
