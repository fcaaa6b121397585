"""Rehearses the migration of a cluster's metadata from ZooKeeper to KRaft."""
