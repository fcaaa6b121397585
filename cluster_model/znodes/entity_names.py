"""Names of users, clients and ips, escaped as in Kafka's znode paths (docs/kafka/znodes.md)."""

from __future__ import annotations

from urllib.parse import quote_plus, unquote_plus

from cluster_model.znodes.layout import DEFAULT_ENTITY


def sanitize(name: str | None) -> str:
    """Return the escaped name; None means the default entity."""
    if name is None:
        return DEFAULT_ENTITY
    return quote_plus(name, safe=".-_").replace("+", "%20").replace("*", "%2A").replace("~", "%7E")


def desanitize(stored: str) -> str | None:
    """Return the original of a name that `sanitize` escaped; None for the default entity."""
    return None if stored == DEFAULT_ENTITY else unquote_plus(stored)
