"""Typed rows: events, transactions, boots, sessions and terms."""
