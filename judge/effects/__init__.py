"""Every effect that a fault can have. To add one, add it to `EFFECTS` of its theme's module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from judge.effects import envelopes, processes, zookeeper
from judge.effects.effect import Effect

EFFECTS: Final[tuple[Effect, ...]] = (
    *processes.EFFECTS,
    *zookeeper.EFFECTS,
    *envelopes.EFFECTS,
)
EFFECT_OF: Final[Mapping[str, Effect]] = {
    action: effect for effect in EFFECTS for action in effect.actions
}
