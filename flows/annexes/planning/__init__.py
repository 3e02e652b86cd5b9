"""Planning: the noise that a claim takes, before anything is run."""

from bandana.flows.annex import Annex
from bandana.flows.annexes.planning.command import calibrate

ANNEX = Annex(commands=(calibrate,))
