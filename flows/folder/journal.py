"""Journal of events, one JSON line each, with the run keys that MLflow and the store know: `log.jsonl` of a suite.

Nothing of the data stands in it: names, keys, counts and seconds.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from bandana.flows.folder.private_files import make_folder, mode_in
from bandana.flows.folder.settings import is_anonymous
from bandana.flows.keys import checkout, provenance
from bandana.flows.texts.json_text import JsonObject


class Journal:
    """An append-only log; several processes may write to it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, event: str, **facts: object) -> None:
        """Appends one event; a line is written whole."""
        line = json.dumps({"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event, **facts})
        make_folder(self._path.parent)
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, mode_in(self._path.parent))
        try:
            os.write(handle, line.encode() + b"\n")
        finally:
            os.close(handle)

    def begin(self, event: str, **facts: object) -> None:
        """Appends the event with which a step begins, and who began it, from which commit and on which machine.

        User and machine are left out where `BANDANA_ANONYMOUS` asks for it.
        """
        code = checkout.checkout()
        commit = None if code is None else f"{code.commit}{'' if code.is_clean else ', changed'}"
        names = {} if is_anonymous() else {"user": provenance.user(), "host": socket.gethostname()}
        self.write(event, **facts, commit=commit, sources=checkout.sources()[:12], **names)

    def read(self) -> Iterator[JsonObject]:
        """Every event, oldest first; a line that was cut off by a crash is left out."""
        if not self._path.exists():
            return
        for line in self._path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                continue
