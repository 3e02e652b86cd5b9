"""The command audit: its options in groups, and one file for each thing that it audits."""
