"""Mechanisms, and where their noise comes from."""
