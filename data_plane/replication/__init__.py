"""Replication: followers fetch from their leader, and the leader maintains the ISR."""
