"""The znodes of Kafka's layout: paths, contents, access. They store the image's values."""
