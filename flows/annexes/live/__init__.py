"""Live: a private bandit between real users, durable and audited as it runs."""

from bandana.flows.annex import Annex

ANNEX = Annex(plugs={}, pages=("bandana/live.py",))
