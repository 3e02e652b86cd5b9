"""Mutation testing: how many planted one-line mistakes the tests catch."""
