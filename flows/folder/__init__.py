"""The data folder: results, journals, locks, and what the machine beneath it is."""
