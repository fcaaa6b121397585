"""The composition root: one broker and one controller candidate in one process."""
