"""MLflow: where runs are kept and compared."""
