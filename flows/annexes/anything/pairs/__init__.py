"""Whatever runs on two data sets: neighbors, runs on both, and what they show."""
