"""The broker half of a node: Kafka listeners, routing, forwarding, the metadata cache."""
