"""Orchestration: what a user writes, the Prefect flows that run it, and MLflow that keeps it."""
