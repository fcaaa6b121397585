"""Partition logs on disk, in Kafka's file format: a real `kafka-dump-log` reads them."""
