"""Compliance: what a reviewer gets and does with it: verification, signed bundles, and a draft for the public registry."""

from bandana.flows.annex import Annex

ANNEX = Annex(
    plugs={
        "panels": {"verify": "audit", "bundle": "share", "key": "share"},
        "commands": {"verify": f"{__name__}.commands:verify", "bundle": f"{__name__}.commands:bundle"},
        "groups": {"key": f"{__name__}.commands:key"},
        "reports": {"registry": f"{__name__}.registry.draft:draft"},
    },
    pages=("docs/evidence.md",),
)
