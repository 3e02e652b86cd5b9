"""Neighboring data sets, and the least favorable pairs among them."""
