"""Regularized least squares from noisy sums, and the norms of their noise."""
