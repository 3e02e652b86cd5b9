"""What releases cost: events, their composition, and the guarantees that follow."""
