"""What a result is a result of: its key, and the record of how it was made."""
