"""A suite's draft entry for the public registry of deployments, from what is in the store."""

from __future__ import annotations

from pathlib import Path

import yaml

from bandana.audits.reporting.document import validate
from bandana.flows.annexes.compliance.registry.entry import RegistryError, registry_entry
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import Store, write_whole
from bandana.flows.own.data import pinned
from bandana.flows.plan.plan import Plan
from bandana.flows.results.report_document import assemble
from bandana.flows.spec.spec import load_spec
from bandana.flows.texts.json_text import JsonObject
from bandana.flows.texts.mistakes import SpecError

_REMINDER = "A draft: check every sentence, and submit it at github.com/opendp/deployments-registry-data."


def draft(spec: Path, folder: DataFolder) -> tuple[JsonObject, list[str]]:
    """Writes `registry.yaml` into the suite's folder; the entry and its place as JSON, and lines that say where it lies.

    Raises:
      SpecError: the store holds nothing of this spec, or the spec declares too little for an entry.
    """
    plan = Plan.of(pinned(load_spec(spec), folder.root))
    document = assemble(plan, spec.read_text(encoding="utf-8"), Store(folder.results))
    validate(document)
    try:
        entry = registry_entry(document)
    except RegistryError as error:
        raise SpecError(f"--registry: {error}") from error
    place = folder.suite(plan.spec.name) / "registry.yaml"
    place.parent.mkdir(parents=True, exist_ok=True)
    write_whole(place, yaml.safe_dump(entry, sort_keys=False, allow_unicode=True, width=100).encode())
    return {"entry": entry, "file": str(place)}, [_REMINDER, f"yaml  {place}"]
