"""Kernel bandits: GP-UCB on features, and on a pool of points."""
