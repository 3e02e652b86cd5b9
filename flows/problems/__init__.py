"""Environments that a spec may name: one file for each kind, with its fields and its behavior."""
