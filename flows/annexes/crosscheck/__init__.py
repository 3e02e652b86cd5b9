"""Cross-checks: dp-accounting and opacus asked about every ledger, and known defects of those libraries."""

from bandana.flows.annex import Annex

ANNEX = Annex(plugs={"panels": {"crosscheck": "audit"}, "commands": {"crosscheck": f"{__name__}.command:crosscheck"}})
