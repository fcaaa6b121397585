"""What clients talk to: Kafka listeners, routing, forwarding, the metadata cache."""
