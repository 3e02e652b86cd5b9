"""Bandits with finitely many arms: index algorithms in episodes, elimination, and trees."""
