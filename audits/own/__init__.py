"""A user's own algorithm that keeps the protocol: checked, and audited as any of the catalog."""
