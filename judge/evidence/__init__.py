"""Seals and reads the evidence of a run."""
