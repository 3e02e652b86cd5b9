"""CAPRI: kernel bandits by elimination on projected features."""
