"""Checks recorded runs against the protocol's specification in TLA+ (`spec/`)."""
