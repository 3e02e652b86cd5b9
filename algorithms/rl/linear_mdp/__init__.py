"""Linear Markov decision processes: LSVI-UCB in batches."""
