"""A suite's draft entry for the public registry of deployments, from what is in the store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from bandana.audits.reporting.document import validate
from bandana.audits.reporting.registry import RegistryError, registry_entry
from bandana.flows.running.settings import DataFolder
from bandana.flows.running.store import Store, write_whole
from bandana.flows.spec.mistakes import SpecError
from bandana.flows.spec.own_data import pinned
from bandana.flows.spec.plan import Plan
from bandana.flows.spec.spec import Spec
from bandana.flows.suites.report_document import assemble


def write_entry(spec: Spec, text: str, folder: DataFolder) -> tuple[dict[str, Any], Path]:
    """Writes `registry.yaml` into the suite's folder; the entry, and where it lies.

    Raises:
      SpecError: the store holds nothing of this spec, or the spec declares too little for an entry.
    """
    document = assemble(Plan.of(pinned(spec, folder.root)), text, Store(folder.results))
    validate(document)
    try:
        entry = registry_entry(document)
    except RegistryError as error:
        raise SpecError(f"--registry: {error}") from error
    place = folder.suite(spec.name) / "registry.yaml"
    place.parent.mkdir(parents=True, exist_ok=True)
    write_whole(place, yaml.safe_dump(entry, sort_keys=False, allow_unicode=True, width=100).encode())
    return entry, place
