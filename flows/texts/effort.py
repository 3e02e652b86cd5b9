"""The number of replays that a spec may ask of an audit."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from bandana.audits.outcome import MIN_REPLAYS
from bandana.flows.texts.fields import MOST, NoTruth

Replays = Annotated[int, Field(ge=MIN_REPLAYS, le=MOST), NoTruth]
