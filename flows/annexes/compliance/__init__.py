"""Compliance: what a reviewer gets and does with it: verification, signed bundles, and a draft for the public registry."""

from bandana.flows.annex import Annex

ANNEX = Annex(
    plugs={
        "commands": {"verify": f"{__name__}.commands_verify:verify", "bundle": f"{__name__}.commands_bundle:bundle"},
        "groups": {"key": f"{__name__}.commands_bundle:key"},
        "reports": {"registry": f"{__name__}.registry.draft:draft"},
    },
    pages=("docs/evidence.md", "docs/how-to/verify-evidence.md"),
)
