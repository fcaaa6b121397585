"""A real Kafka in KRaft mode: its jars, its files and its processes."""
