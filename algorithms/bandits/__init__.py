"""Bandit algorithms: one round is one record."""
