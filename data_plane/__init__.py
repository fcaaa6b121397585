"""Stores records, replicates them and coordinates groups (docs/adr/0011-data-plane.md)."""
