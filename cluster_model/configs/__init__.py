"""Configs of topics and brokers: tables, types, validation, effective values."""
