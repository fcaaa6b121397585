"""The page that shows a running cluster or a recorded run (docs/ui.md).

It reads the evidence files and the control socket, never the memory of a node.
"""
