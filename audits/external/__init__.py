"""Audits of a user's own algorithm."""
