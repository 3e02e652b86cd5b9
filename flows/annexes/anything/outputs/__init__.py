"""How a subject is called, and how its outputs become scores and bounds."""
