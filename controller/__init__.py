"""The controller half of a node. It takes part in elections, and decides and commits writes."""
