"""Empirical audits: replay neighboring data sets, bound the privacy loss from below, and hold it against the claim."""
