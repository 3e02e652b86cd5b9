"""Calls of a subject, and scores of its outputs with bounds on them."""
