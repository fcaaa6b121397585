"""Runs the test suites of released clients, unmodified, on Bridgehead and on a live Kafka."""
