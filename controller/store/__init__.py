"""Writes decisions to ZooKeeper in fenced multis, and loads them from there."""
