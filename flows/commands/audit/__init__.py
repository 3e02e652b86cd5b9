"""The command audit: its options in groups, the catalog, and what annexes audit."""
