"""The znodes of Kafka's layout: paths, contents, access."""
