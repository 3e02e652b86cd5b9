"""Cost of releases: events, their composition, and the guarantees that follow."""
