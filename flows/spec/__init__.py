"""The models of a spec: what a user writes."""
