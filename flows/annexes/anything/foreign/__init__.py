"""Primitives of other libraries: priced where they are called, and frozen while a program runs on a neighbor."""
