"""A forger who knows the format: whatever they change in a bundle, hashes, manifest, page and PDF are made to fit."""

from __future__ import annotations

import copy
import io
import json
import pickle
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from typing import Any

import numpy as np

from bandana.audits.contents import digest
from bandana.audits.evidence import seal
from bandana.audits.reporting import render_html, render_pdf
from bandana.flows.annexes.compliance import verify
from bandana.flows.annexes.compliance.evidence import recompute as recomputation
from bandana.flows.annexes.compliance.evidence import replayed as replays
from bandana.flows.annexes.compliance.evidence.bundle import REPORT, Bundle, archive_of, statement_of
from bandana.flows.annexes.compliance.evidence.signature import PUBLIC_KEY, public_pem, sign
from bandana.flows.results.audit_report import evidence_field


class Forger:
    """The files of a bundle, to be changed and packed again.

    Args:
      bundle: an honest one.
    """

    def __init__(self, bundle: Bundle) -> None:
        self.files, self.predicate = dict(bundle.files), copy.deepcopy(bundle.predicate)
        self.files.pop(PUBLIC_KEY, None)

    @property
    def evidence(self) -> str:
        """Name of the first evidence file."""
        return min(name for name in self.files if name.startswith("evidence/"))

    @property
    def block(self) -> str:
        """Name of the first block of replications."""
        return min(name for name in self.files if name.startswith("results/"))

    def report(self, change: Callable[[dict[str, Any]], Any]) -> Forger:
        """Changes the report's document; page, PDF, spec and manifest follow where they can be made of it."""
        return self.document(change).pages()

    def document(self, change: Callable[[dict[str, Any]], Any]) -> Forger:
        """Changes the report's document, and leaves its pages as they were."""
        document = json.loads(self.files[REPORT])
        change(document)
        self.files[REPORT] = (json.dumps(document, indent=1) + "\n").encode()
        self.files["spec.yaml"] = str(document.get("spec")).encode()
        for name in ("title", "suite", "kind"):
            self.predicate[name] = document.get(name)
        self.predicate["computed"] = document.get("created")
        return self

    def pages(self) -> Forger:
        """Page and PDF made of the document, where they can be."""
        document = json.loads(self.files[REPORT])
        for name, render in (("report.html", lambda found: render_html(found).encode()), ("report.pdf", render_pdf)):
            if name in self.files:
                try:
                    self.files[name] = render(document)
                except (ValueError, KeyError, TypeError, AttributeError):
                    del self.files[name]
        return self

    def described(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Description and arrays of the evidence."""
        with np.load(io.BytesIO(self.files[self.evidence])) as archive:
            arrays = {name: archive[name] for name in archive.files}
        return json.loads(bytes(arrays.pop("description"))), arrays

    def audit(self, change: Callable[[dict[str, Any]], Any]) -> Forger:
        """Changes the description of the evidence, and lists the new file in the report, whose pages are as they were."""
        description, arrays = self.described()
        change(description)
        return self.listed(self.evidence, seal(description, arrays), digest(arrays, description))

    def replace(self, name: str, content: bytes) -> Forger:
        """Puts another listed file in place of one."""
        return self.listed(name, content).pages()

    def listed(self, name: str, content: bytes, numbers: str = "0" * 64) -> Forger:
        """Puts another listed file in place of one, and leaves the pages as they were."""
        self.files[name] = content

        def listed(document: dict[str, Any]) -> None:
            files = document["evidence"]["files"]
            next(file for file in files if file["path"] == name).update(sha256=sha256(content).hexdigest(), numbers=numbers)
            document["evidence"] = evidence_field(files)

        return self.document(listed)

    def packed(self, key: Any = None) -> bytes:
        """The bundle, signed if there is a key."""
        files = dict(self.files)
        if key is not None:
            files[PUBLIC_KEY] = public_pem(key.public_key())
        manifest = statement_of(files, self.predicate)
        return archive_of(files, manifest, None if key is None else sign(manifest, key))


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every value of a JSON tree that is no list or mapping, with its path."""
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from leaves(item, (*path, key))
    if not isinstance(value, Mapping | list):
        yield path, value


def put(tree: Any, path: tuple[Any, ...], value: Any) -> None:
    """Sets the value at a path."""
    for key in path[:-1]:
        tree = tree[key]
    tree[path[-1]] = value


def mutated(value: Any, rng: np.random.Generator) -> Any:
    """Another value of the same kind."""
    if value is None:
        return [0, "x", 0.5][int(rng.integers(3))]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + int(rng.choice([-1, 1, 7]))
    if isinstance(value, float):
        return float(value + rng.choice([-0.5, 0.001, 1.0]))
    return value[:-1] if value and rng.random() < 0.5 else f"{value}x"


def remember(patch: Any) -> None:
    """Bounds, searches and planted faults that were run once are remembered: forgeries of one audit share most of them."""
    known: dict[Any, Any] = {}

    def kept(function: Callable[..., Any], key_of: Callable[..., Any]) -> Callable[..., Any]:
        def once(*given: Any) -> Any:
            key = (function, key_of(*given))
            if key not in known:
                known[key] = function(*given)
            return known[key]

        return once

    def of_request(asked: Any) -> Any:
        data = sha256(pickle.dumps(asked.trial.table)).hexdigest()
        return repr(asked.trial.algorithm), str(asked.trial.claim), data, asked.effort, asked.failure

    def of_bound(bound: Any, scores: Any) -> Any:
        return bound.view, bound.method, repr(bound.parameters), bound.level, *(side.tobytes() for side in scores)

    patch.setattr(recomputation, "recompute", kept(recomputation.recompute, of_bound))
    patch.setattr(replays, "try_control", kept(replays.try_control, lambda asked, fault: (of_request(asked), fault.name)))
    patch.setattr(verify, "rendered", kept(verify.rendered, lambda document, kind: (json.dumps(document), kind)))
    for search in (replays.Deterministic, replays.Noise):
        patch.setattr(search, "examine", kept(search.examine, lambda mine, asked: (type(mine), of_request(asked))))
