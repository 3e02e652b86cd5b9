"""Replays on neighboring data sets, and what is measured from them."""
