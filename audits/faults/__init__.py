"""Planted faults: what an audit must catch to be believed."""
