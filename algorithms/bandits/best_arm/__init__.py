"""Best-arm identification: which arm is the best, how soon that is known, and how surely."""
