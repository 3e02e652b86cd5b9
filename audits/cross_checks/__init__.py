"""Other libraries' answers beside ours."""
