"""Compliance: what a reviewer gets and does with it: verification, signed bundles, and a draft for the public registry."""

from bandana.flows.annex import Annex
from bandana.flows.annexes.compliance import commands_bundle, commands_verify

ANNEX = Annex(
    commands=(commands_verify.verify, commands_bundle.bundle),
    groups={"key": commands_bundle.key},
    plugs={"reports": {"registry": "bandana.flows.annexes.compliance.registry.draft:draft"}},
    pages=("docs/evidence.md", "docs/how-to/verify-evidence.md"),
)
