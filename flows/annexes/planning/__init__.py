"""Planning: the noise that a claim takes, and the exploration of each cell, before anything is run."""

from bandana.flows.annex import Annex

ANNEX = Annex(
    plugs={
        "panels": {"tune": "run", "calibrate": "start"},
        "commands": {"tune": f"{__name__}.tune_command:tune", "calibrate": f"{__name__}.command:calibrate"},
    }
)
