"""Devices: replays of three families as batched products in torch, on whatever device it knows; nothing needs one."""

from bandana.flows.annex import Annex

ANNEX = Annex(plugs={"devices": {"torch": f"{__name__}.replays:player"}})
