"""Record batches and message sets: parsing, validation, building. Pure: no I/O and no clock."""
