"""Writes of brokers below the bridge release: each to ZooKeeper itself. KIP-590 §Compatibility."""
