"""The requests of a KRaft controller to a broker that migrates."""
