"""Requests that are committed but whose answer waits for the image (kafka-semantics 3.22). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cluster_model.image import MetadataImage
from controller.apis.base import WaitFor
from controller.work import Work


def _reached(work: Work, key: Any, image: MetadataImage) -> bool:
    if work.wait.what is WaitFor.DELETION:
        return key not in image.topic_names
    if work.wait.what is WaitFor.ELECTION:
        name, partition = key
        found = image.topics.get(name)
        states = found.states[partition : partition + 1] if found is not None else ()
        return any(state.leader >= 0 for state in states)
    topic = image.topics.get(key)
    # A topic deleted meanwhile will never have leaders; the wait ends at its timeout.
    return topic is not None and all(state.leader >= 0 for state in topic.states)


def _name(work: Work, key: Any, image: MetadataImage) -> str | None:
    """Return the topic that a key speaks of; None when it is gone."""
    if work.wait.what is WaitFor.DELETION:
        return image.topic_names.get(key)
    name: str = key[0] if work.wait.what is WaitFor.ELECTION else key
    return name


class Waiting:
    """Who waits for which topics. One slow topic delays the answer of its whole request."""

    def __init__(self) -> None:
        self._missing: dict[Work, dict[str, Any]] = {}
        self._names: dict[Work, tuple[str, ...]] = {}
        self._by_name: dict[str, set[Work]] = {}

    def add(self, work: Work, keys: Mapping[str, Any], image: MetadataImage) -> bool:
        """Wait for `keys` (see Wait.topics); False when all are there already."""
        missing = {e: key for e, key in keys.items() if not _reached(work, key, image)}
        if work.wait.timeout_ms <= 0:
            missing = dict(keys)  # Kafka answers at once that every success timed out.
        if not missing:
            return False
        self._missing[work] = missing
        names = [_name(work, key, image) for key in missing.values()]
        self._names[work] = tuple(name for name in names if name is not None)
        for name in self._names[work]:
            self._by_name.setdefault(name, set()).add(work)
        return True

    def reached(self, image: MetadataImage, changed: Iterable[str]) -> list[Work]:
        """Return the requests that need wait no longer, now that `changed` topics are in."""
        candidates = {work for name in changed for work in self._by_name.get(name, ())}
        done = []
        for work in candidates:
            missing = self._missing[work]
            for element in [e for e, key in missing.items() if _reached(work, key, image)]:
                del missing[element]
            if not missing:
                self._forget(work)
                done.append(work)
        return done

    def give_up(self, work: Work) -> frozenset[str] | None:
        """The time is over: return the elements still missing; None if it was answered before."""
        missing = self._missing.get(work)
        if missing is None:
            return None
        self._forget(work)
        return frozenset(missing)

    def drain(self) -> list[Work]:
        """Return everybody who waits, and forget them."""
        works = list(self._missing)
        self._missing.clear()
        self._names.clear()
        self._by_name.clear()
        return works

    def _forget(self, work: Work) -> None:
        del self._missing[work]
        for name in self._names.pop(work):
            waiting = self._by_name.get(name, set())
            waiting.discard(work)
            if not waiting:
                self._by_name.pop(name, None)
