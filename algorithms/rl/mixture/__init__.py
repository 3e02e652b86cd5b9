"""Linear mixture Markov decision processes: UCRL-VTR and UCRL-VTR+."""
