"""Commands that answer a question and leave nothing behind."""
