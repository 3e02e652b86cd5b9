"""Planning: the noise that a claim takes, before anything is run."""

from bandana.flows.annex import Annex

ANNEX = Annex(plugs={"commands": {"calibrate": f"{__name__}.command:calibrate"}})
