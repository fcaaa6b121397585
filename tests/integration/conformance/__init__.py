"""What each API answers, as literal tables: one file an API, read in `tables.TABLES`."""
