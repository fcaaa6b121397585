"""Joined and aggregated rows: requests, decisions, commits, properties."""
