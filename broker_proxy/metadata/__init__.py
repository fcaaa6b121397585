"""What this broker knows of the cluster: its ZooKeeper session and its caches."""
