"""What goes wrong around a cluster, said in one sentence to a person."""

from __future__ import annotations


class ClusterError(Exception):
    """One sentence: what is wrong and what to do. The command prints it and exits with 2."""
