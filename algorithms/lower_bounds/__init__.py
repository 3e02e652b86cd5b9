"""Lower bounds on the regret of every algorithm of a class, private or not: one file a kind of problem."""
