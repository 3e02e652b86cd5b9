"""The draft of an entry for the public registry of deployments."""
