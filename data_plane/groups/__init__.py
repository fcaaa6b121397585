"""Consumer groups of the classic protocol, as Kafka 3.9's group coordinator implements them."""
