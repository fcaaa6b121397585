"""The error of the cluster commands."""

from __future__ import annotations


class ClusterError(Exception):
    """A command or method of a cluster failed.

    The text is usually one sentence: what is wrong and how to fix it. A `bridgehead` command prints
    the text and exits with code 4.
    """
