"""Identity of a result: its key, and the record of how it was made."""
