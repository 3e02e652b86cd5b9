"""Private bandit and reinforcement-learning algorithms, their environments, and the loop that plays them."""
