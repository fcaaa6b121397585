"""Judges the evidence of a run against the properties. Shares no code with the nodes."""
