"""Stores records, replicates them and coordinates groups."""
