"""The error of the cluster commands."""

from __future__ import annotations


class ClusterError(Exception):
    """Usually one sentence: what is wrong and how to fix it.

    The command prints it and exits with 4.
    """
