"""The tier `simulated`: all nodes in one process, with virtual time and a simulated network.

The nodes are the production code. Only their environment is simulated: the event loop and the
clocks (`virtual_time`), connections (`network`, `envelope_stream`) and ZooKeeper (`zookeeper`,
`zookeeper_session`). All random choices come from the seed, so a seed always gives the same run.
"""
