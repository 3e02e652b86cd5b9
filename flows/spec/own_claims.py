"""The claim of a user's own algorithm, which may name its parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from bandana.algorithms.entry import Claim, Settings
from bandana.audits.claims import ClaimError, parse, split_pair

_HELD = re.compile(r"\{(\w+)\}")


def promise(text: str, source: str, settings: Settings) -> Claim:
    """The claim at given settings; see `claim_of`."""
    return claim_of(text, source, settings.parameters)


def claim_of(text: str, source: str, parameters: Mapping[str, Any]) -> Claim:
    """The claim with each {NAME} replaced by that parameter.

    Raises:
      ClaimError: what results is no claim.
      KeyError: a name is no parameter; see `held`.
    """
    if split_pair(text)[1] is not None:
        raise ClaimError(
            f"claim {text!r}: a benchmark's audit plays data of its own; audit a given pair with bandana audit --algorithm"
        )
    return parse(_HELD.sub(lambda found: str(parameters[found[1]]), text), source=source)


def held(text: str) -> list[str]:
    """The parameters that a claim names."""
    return _HELD.findall(text)
