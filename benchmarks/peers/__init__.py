"""The same work in public libraries and in ours, side by side in one run: `python -m benchmarks.peers FOLDER`."""
