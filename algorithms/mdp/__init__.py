"""Finite Markov decision processes: models of linear structure, and planning."""
