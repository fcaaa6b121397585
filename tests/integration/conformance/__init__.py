"""Requests and expected responses as literal tables: `tables` lists them."""
