"""Compliance: what a reviewer gets and does with it: verification, signed bundles, and a draft for the public registry."""

from bandana.flows.annex import Annex

ANNEX = Annex(
    plugs={
        "panels": {"verify": "audit", "bundle": "share", "ci": "share", "key": "share"},
        "commands": {
            "verify": f"{__name__}.commands:verify",
            "bundle": f"{__name__}.commands:bundle",
            "ci": f"{__name__}.commands:ci",
        },
        "groups": {"key": f"{__name__}.commands:key"},
        "reports": {"registry": f"{__name__}.registry.draft:draft"},
    },
    pages=("docs/evidence.md", "deploy/action", ".pre-commit-hooks.yaml", "tests/data/sarif-schema-2.1.0.json"),
)
