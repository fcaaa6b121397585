"""The metrics of a node, with the names that KIP-590 and Kafka give them."""
