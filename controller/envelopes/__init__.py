"""Receives Envelopes: checks each, and gives its request to the loop."""
