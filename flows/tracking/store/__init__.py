"""Where MLflow keeps runs: its address, its client, its errors and its locks."""
