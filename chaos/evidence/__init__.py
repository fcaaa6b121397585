"""What a run leaves behind: gathered, sealed, and read again without losing a line."""
