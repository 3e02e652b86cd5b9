"""Annexes, see `bandana.flows.annex`."""
