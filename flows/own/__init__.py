"""Code and data of users: loaded once, known by their content, and the budget of private rows."""
