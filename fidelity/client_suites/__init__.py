"""Runs the test suites of released clients, unmodified, on three brokers; and on a live Kafka."""
