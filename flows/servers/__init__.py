"""Servers on this machine: Prefect's for one command, and who may log in."""
