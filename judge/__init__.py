"""Judges the evidence of a run against the properties.

It imports none of the code that it judges, except `event_log`, which has the formats.
"""
