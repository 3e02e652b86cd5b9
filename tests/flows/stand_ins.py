"""Stand-ins of figures: a suite's pages hold them in place of what takes Matplotlib most of a short run's time."""

from __future__ import annotations

from typing import Any


class StandIns(dict[str, str]):
    """In place of each figure, the hash of what it shows: pages still differ where their figures would."""

    def get(self, key: str, default: Any = None) -> str:
        """A small figure of a key."""
        size = 'width="200pt" height="20pt" viewBox="0 0 200 20"'
        return f'<svg xmlns="http://www.w3.org/2000/svg" {size}><text y="10" font-size="3">{key}</text></svg>'
