"""The tier `local`: real processes and a real ZooKeeper on this machine."""
