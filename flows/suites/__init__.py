"""Orchestration: which step comes next, with Prefect or without."""
