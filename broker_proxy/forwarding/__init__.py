"""Sends requests to the active controller and repeats them."""
