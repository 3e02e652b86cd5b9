"""Lower bounds on a privacy loss from stored scores."""
