"""Contextual linear bandits: rarely switching OFUL and LinUCB."""
