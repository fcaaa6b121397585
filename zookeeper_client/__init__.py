"""An async interface over kazoo, for all ZooKeeper sessions of a node."""
