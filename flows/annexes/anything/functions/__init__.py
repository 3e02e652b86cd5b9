"""Functions of rewards: what they play, on which rewards they are screened, and what is bounded from their actions."""
