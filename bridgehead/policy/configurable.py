"""What every policy has beside its judgements: a beginning and an end."""

from __future__ import annotations

from collections.abc import Mapping


class Configurable:
    """Built without arguments, configured once, closed once (KIP-108 §Public Interfaces)."""

    def configure(self, configs: Mapping[str, str]) -> None:
        """Take the broker's properties, as they were given to it.

        What is raised here keeps the broker from starting, and is shown to the operator.
        """

    def close(self) -> None:
        """Release what was opened; called when the broker stops."""
