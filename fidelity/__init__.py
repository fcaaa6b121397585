"""Compares responses with those of a real Kafka 3.9.1, recorded or live."""
