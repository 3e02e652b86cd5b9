"""Cross-checks: dp-accounting and opacus asked about every ledger, and known defects of those libraries."""

from bandana.flows.annex import Annex
from bandana.flows.annexes.crosscheck.command import crosscheck

ANNEX = Annex(commands=(crosscheck,))
