"""Kernels of reproducing-kernel Hilbert spaces, and features that stand for them."""
