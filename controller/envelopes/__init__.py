"""Receives Envelopes: checks, host names, responses."""
