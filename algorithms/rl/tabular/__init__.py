"""Optimistic value iteration in finite Markov decision processes without structure."""
