"""The controller half of a node, the only writer of metadata: election, decisions, commit."""
