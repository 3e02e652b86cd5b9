"""Texts of users: YAML and JSON, the kinds of fields, and mistakes told with their line."""
