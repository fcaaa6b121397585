"""Kafka's bridge release (KIP-590) on one laptop."""

from __future__ import annotations

__version__ = "0.1.0"
__all__ = ["__version__"]
