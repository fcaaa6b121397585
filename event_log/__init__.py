"""The event log and the formats of the evidence."""
