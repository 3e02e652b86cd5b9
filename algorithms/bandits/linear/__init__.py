"""Linear bandits: phased elimination on optimal designs."""
