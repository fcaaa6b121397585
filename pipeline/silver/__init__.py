"""Typed rows of the evidence, its gaps, and the lines that were set aside."""
