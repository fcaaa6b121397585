"""Kafka clients that send given bytes unchanged: for benchmarks, demos and tests."""
