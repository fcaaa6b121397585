"""Builds and runs a node: one broker and one controller candidate in one process."""
