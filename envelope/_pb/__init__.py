"""Generated from proto/envelope.proto by `make proto`; never edited."""
