"""IP addresses as text, formatted as in Java, for ACLs and logs."""

from __future__ import annotations

import ipaddress
from functools import lru_cache


@lru_cache(maxsize=1024)
def host_text(address: bytes) -> str:
    """Return 4 or 16 bytes as Java's getHostAddress: `127.0.0.1`, `0:0:0:0:0:0:0:1`."""
    if len(address) == 4:
        return str(ipaddress.IPv4Address(address))
    groups = (address[i : i + 2] for i in range(0, 16, 2))
    return ":".join(f"{int.from_bytes(group):x}" for group in groups)
