"""A broker that migrates to KRaft: its registration, its heartbeats, its Envelopes (KIP-866)."""
