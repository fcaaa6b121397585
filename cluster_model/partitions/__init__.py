"""Partitions: where replicas are placed, which replica leads, and reassignments."""
