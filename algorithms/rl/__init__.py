"""Reinforcement-learning algorithms: one episode is one record."""
