"""Compares answers with those of a real Kafka 3.9.1, recorded and live."""
