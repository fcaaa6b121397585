"""Compares our responses with the responses of a real Kafka 3.9.1, recorded or live."""
