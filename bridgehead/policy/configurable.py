"""The life cycle of a policy."""

from __future__ import annotations

from collections.abc import Mapping


class Configurable:
    """Built without arguments, configured once, closed once (KIP-108 §Public Interfaces)."""

    def configure(self, configs: Mapping[str, str]) -> None:
        """Read the broker's properties, unparsed.

        An exception prevents the broker from starting; the operator sees its message.
        """

    def close(self) -> None:
        """Release resources. Called when the broker stops."""
