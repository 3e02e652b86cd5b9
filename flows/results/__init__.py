"""Results of a suite: summaries, comparisons, the report's document, and what is held against a baseline."""
