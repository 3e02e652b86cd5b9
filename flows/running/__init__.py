"""Processes that work runs in: children, pools, limits, and interrupts."""
