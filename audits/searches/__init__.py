"""Searches for a privacy leak: in exact values, in the noise, and in its last bits."""
