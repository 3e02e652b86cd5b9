"""Speed, measured beside its limit in the same run: `make bench`."""
