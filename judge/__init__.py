"""Judges the evidence of a run against the properties.

Of the code that the nodes run, it imports only `event_log`: the formats and the verdicts' rules.
"""
