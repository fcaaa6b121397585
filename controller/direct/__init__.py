"""Direct writes to ZooKeeper by brokers below the bridge release. KIP-590 §Compatibility."""
