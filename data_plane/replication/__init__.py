"""Replication: followers fetch from their leader, and the leader keeps the ISR."""
