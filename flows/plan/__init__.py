"""The work that a spec means: cells, blocks, their keys and their seeds."""
