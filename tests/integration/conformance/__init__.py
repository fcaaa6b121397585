"""Requests and expected responses as literal tables: one module per API, listed in `tables`."""
