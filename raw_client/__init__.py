"""Kafka clients that send exact bytes: for the harness, benchmarks, demos and tests."""
