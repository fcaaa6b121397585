"""The controller mutation quota: partitions that a user or client may create and delete a second.

KIP-599; kafka-semantics 3.15. Every user or client has a token bucket that is refilled at its
rate, up to what `controller.quota.window.num` windows bring. An element is let through while its
bucket is not below zero, however large it is; so a bucket goes below zero once, and nothing more
is let through until it is refilled. A request of an older version is always let through, and its
client is held up instead.

The state is the controller's in office and goes with it, as in Kafka. Time comes in.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from bridgehead.kafka_wire.errors import ErrorCode
from cluster_model.client_quotas import Level, governing_level
from cluster_model.records import ConfigResource, DeletionMarkerRecord
from cluster_model.scala_order import mutable_hash_order
from controller.apis.base import Decided, Outcome, RequestContext

# From this version on a request is refused what exceeds the quota; before, it is only held up.
STRICT_SINCE: Final[Mapping[int, int]] = {19: 6, 20: 5, 37: 3}
# Kafka keeps the topics of these requests in hash tables, and charges them in their order.
_CHARGED_IN_HASH_ORDER: Final = (19, 20)
EXCEEDED: Final = Outcome(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
# A bucket that nobody touched for an hour is full again.
_FORGOTTEN_AFTER_MS: Final = 3_600_000
# Client ids are the clients' own invention: beyond this the bucket used longest ago is dropped.
_BUCKETS_MAX: Final = 10_000


@dataclass(slots=True)
class _Bucket:
    """What is left to one user or client. Tokens are partitions; below zero: over the quota."""

    tokens: float = 0.0
    filled_ms: int = 0

    def fill(self, rate: float, burst: float, now_ms: int) -> None:
        elapsed_s = max(0, now_ms - self.filled_ms) / 1000
        self.tokens = min(burst, self.tokens + rate * elapsed_s)
        self.filled_ms = now_ms


@dataclass(slots=True)
class Charges:
    """What one request has paid, and for how long its client shall be quiet.

    `paid` names elements: one that is decided again, its image not having come true, pays once.
    """

    paid: set[str] = field(default_factory=set)
    throttle_ms: int = 0
    since_ms: int = 0

    def throttle_left_ms(self, now_ms: int) -> int:
        """Return what is left of the throttle; the request itself may have taken a part of it."""
        return max(0, self.throttle_ms - max(0, now_ms - self.since_ms))


class MutationQuotas:
    """The buckets of one term of office."""

    def __init__(self, samples: int, window_s: int) -> None:
        """`samples`, `window_s`: controller.quota.window.num and .size.seconds."""
        self._burst_s = samples * window_s
        self._buckets: OrderedDict[Level, _Bucket] = OrderedDict()

    def charge(
        self,
        context: RequestContext,
        elements: Sequence[Decided],
        rates: Mapping[ConfigResource, float],
        charges: Charges,
    ) -> Sequence[Decided]:
        """Charge one request's elements; return them, those refused that exceed the quota."""
        if not rates:
            return elements
        level, rate = governing_level(rates, context.principal.name, context.client_id)
        if rate is None:
            self._buckets.pop(level, None)
            return elements
        now_ms = context.now_ms
        bucket = self._bucket(level, now_ms)
        bucket.fill(rate, rate * self._burst_s, now_ms)
        strict = context.api_version >= STRICT_SINCE.get(context.api_key, 0)
        refused: set[str] = set()
        for decided in _in_order(context.api_key, elements):
            if decided.element in charges.paid:
                continue
            if strict and bucket.tokens < 0:
                refused.add(decided.element)
            else:
                bucket.tokens -= decided.mutations or 0
                charges.paid.add(decided.element)
            if bucket.tokens < 0 and (not strict or refused):
                charges.throttle_ms = _until_zero_ms(bucket.tokens, rate)
                charges.since_ms = now_ms
        if not refused:
            return elements
        return [_refused(d) if d.element in refused else d for d in elements]

    def _bucket(self, level: Level, now_ms: int) -> _Bucket:
        bucket = self._buckets.pop(level, None)
        if bucket is None or now_ms - bucket.filled_ms > _FORGOTTEN_AFTER_MS:
            bucket = _Bucket()
        self._buckets[level] = bucket
        while len(self._buckets) > _BUCKETS_MAX:
            self._buckets.popitem(last=False)
        return bucket


def _refused(decided: Decided) -> Decided:
    return replace(decided, outcome=EXCEEDED, records=(), following=())


def _in_order(api_key: int, elements: Sequence[Decided]) -> Sequence[Decided]:
    """Return what is to be paid for, in the order in which Kafka lets it pay."""
    paying = {_topic(d): d for d in elements if d.mutations is not None}
    if api_key not in _CHARGED_IN_HASH_ORDER:
        return list(paying.values())
    return [paying[name] for name in mutable_hash_order(paying)]


def _topic(decided: Decided) -> str:
    for record in decided.records:
        if isinstance(record, DeletionMarkerRecord):
            return record.topic  # The element may be an id.
    return decided.element


def _until_zero_ms(tokens: float, rate: float) -> int:
    """Return how long a bucket below zero is refilled; 0 where that never ends, as Kafka says."""
    if rate <= 0:
        return 0
    return math.floor(min(2**31 - 1, -tokens / rate * 1000 + 0.5))
