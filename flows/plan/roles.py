"""Why a cell stands in a benchmark."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """Why a cell stands in a benchmark."""

    ALGORITHM = "algorithm"
    """The spec lists it."""
    TWIN = "twin"
    """A private cell again, without the noise: the same widths, the same forgetting."""
    REFERENCE = "reference"
    """Uniform play, the best constant action, or greedy play: what any algorithm should beat."""
