"""Hot kernels on plain arrays with a leading replicate axis; each stands beside a NumPy reference that a test compares."""
