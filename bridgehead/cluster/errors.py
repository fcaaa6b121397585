"""The error of the cluster commands."""

from __future__ import annotations

from operator import methodcaller
from typing import Final


class ClusterError(Exception):
    """A command or method of a cluster failed.

    The text is usually one sentence: what is wrong and how to fix it. A `bridgehead` command prints
    the text and exits with code 4.
    """


HIDE_FROM_PYTEST: Final = methodcaller("errisinstance", ClusterError)
"""As `__tracebackhide__` of a module: for a ClusterError, pytest shows the line of the test instead
of the module's code."""
