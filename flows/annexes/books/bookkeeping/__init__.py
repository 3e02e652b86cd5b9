"""Budget books: one append-only, hash-chained ledger of all runs over one private data set."""
