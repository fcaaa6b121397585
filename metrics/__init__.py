"""Metrics of a node, under the names of KIP-590 and of Kafka."""
