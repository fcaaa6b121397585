"""Committed requests whose responses wait for the image (docs/kafka/requests.md). Pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

from cluster_model.image import MetadataImage
from controller.apis.base import WaitFor
from controller.requests.pending_request import PendingRequest


def _is_met(pending: PendingRequest, key: Any, image: MetadataImage) -> bool:
    if pending.wait.condition is WaitFor.DELETION:
        return key not in image.topic_names
    if pending.wait.condition is WaitFor.ELECTION:
        name, partition = key
        existing = image.topics.get(name)
        states = existing.states[partition : partition + 1] if existing is not None else ()
        return any(state.leader >= 0 for state in states)
    topic = image.topics.get(key)
    # If the topic was deleted meanwhile, the request waits until its timeout.
    return topic is not None and all(state.leader >= 0 for state in topic.states)


def _name(pending: PendingRequest, key: Any, image: MetadataImage) -> str | None:
    """Return the topic of a key; None if it no longer exists."""
    if pending.wait.condition is WaitFor.DELETION:
        return image.topic_names.get(key)
    name: str = key[0] if pending.wait.condition is WaitFor.ELECTION else key
    return name


class ImageWaits:
    """Waiting requests by topic. One slow topic delays the response of its whole request."""

    def __init__(self) -> None:
        self._missing: dict[PendingRequest, dict[str, Any]] = {}
        self._names: dict[PendingRequest, tuple[str, ...]] = {}
        self._by_name: dict[str, set[PendingRequest]] = {}
        self._order: dict[PendingRequest, int] = {}  # requests are answered in this order
        self._numbers = itertools.count()

    def add(self, pending: PendingRequest, keys: Mapping[str, Any], image: MetadataImage) -> bool:
        """Wait for `keys` (see Wait.topics); False if all their conditions are met already."""
        missing = {e: key for e, key in keys.items() if not _is_met(pending, key, image)}
        if pending.wait.timeout_ms <= 0:
            # As in Kafka, without a positive timeout every success is reported as timed out.
            missing = dict(keys)
        if not missing:
            return False
        self._missing[pending] = missing
        self._order[pending] = next(self._numbers)
        names = [_name(pending, key, image) for key in missing.values()]
        self._names[pending] = tuple(name for name in names if name is not None)
        for name in self._names[pending]:
            self._by_name.setdefault(name, set()).add(pending)
        return True

    def reached(self, image: MetadataImage, changed: Iterable[str]) -> list[PendingRequest]:
        """Pop the requests whose conditions are all met, after a change of these topics."""
        candidates = {pending for name in changed for pending in self._by_name.get(name, ())}
        done = []
        for pending in sorted(candidates, key=self._order.__getitem__):
            missing = self._missing[pending]
            for element in [e for e, key in missing.items() if _is_met(pending, key, image)]:
                del missing[element]
            if not missing:
                self._forget(pending)
                done.append(pending)
        return done

    def give_up(self, pending: PendingRequest) -> frozenset[str] | None:
        """Pop a timed-out request. Return its unfinished elements; None if it was not waiting."""
        missing = self._missing.get(pending)
        if missing is None:
            return None
        self._forget(pending)
        return frozenset(missing)

    def drain(self) -> list[PendingRequest]:
        """Pop all requests."""
        waiting = list(self._missing)
        self._missing.clear()
        self._names.clear()
        self._order.clear()
        self._by_name.clear()
        return waiting

    def _forget(self, pending: PendingRequest) -> None:
        del self._missing[pending]
        del self._order[pending]
        for name in self._names.pop(pending):
            waiting = self._by_name.get(name, set())
            waiting.discard(pending)
            if not waiting:
                self._by_name.pop(name, None)
