"""The controller mutation quota: partitions that a user or client may create and delete per second.

KIP-599; docs/kafka/quotas.md#controller-mutation-quota. Every user or client has a token bucket. It
is refilled at the quota's rate and holds at most the tokens of `controller.quota.window.num`
windows. While the bucket is not below zero, an element of any size is accepted; while it is below
zero, every element is rejected. Older versions of a request have no error code for a rejection:
their elements are accepted, and the client is throttled.

As in Kafka, the buckets are lost when the controller changes. The current time is an argument.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.apis import DRAFTED_SPECS
from bridgehead.kafka_wire.errors import ErrorCode
from cluster_model.client_quotas import QuotaLevel, governing_level
from cluster_model.records import ConfigResource, DeletionMarkerRecord
from cluster_model.scala_order import mutable_hash_order
from controller.apis.base import Decided, Outcome, RequestContext
from controller.requests.pending_request import Charges

# Kafka puts the topics of these requests into hash tables, and charges them in the order of the
# table.
_CHARGED_IN_HASH_ORDER: Final = (ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS)
EXCEEDED: Final = Outcome(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
# A bucket that was not used for an hour counts as full.
_EXPIRES_AFTER_MS: Final = 3_600_000
# Bounds the memory, because clients choose their ids. The least recently used bucket is dropped.
_BUCKETS_MAX: Final = 10_000


@dataclass(slots=True)
class _Bucket:
    """The tokens of one user or client. Each created or deleted partition takes one token."""

    tokens: float = 0.0
    filled_ms: int = 0

    def fill(self, rate: float, burst: float, now_ms: int) -> None:
        elapsed_s = max(0, now_ms - self.filled_ms) / 1000
        self.tokens = min(burst, self.tokens + rate * elapsed_s)
        self.filled_ms = now_ms


class MutationQuotas:
    """The buckets of one term."""

    def __init__(self, samples: int, window_s: int) -> None:
        """`samples`, `window_s`: controller.quota.window.num and .size.seconds."""
        self._burst_s = samples * window_s
        self._buckets: OrderedDict[QuotaLevel, _Bucket] = OrderedDict()

    def charge(
        self,
        context: RequestContext,
        elements: Sequence[Decided],
        rates: Mapping[ConfigResource, float],
        charges: Charges,
    ) -> Sequence[Decided]:
        """Charge one request's elements. Return them; elements above the quota are rejected."""
        if not rates:
            return elements
        level, rate = governing_level(
            rates, context.client.principal.name, context.client.client_id
        )
        if rate is None:
            self._buckets.pop(level, None)
            return elements
        now_ms = context.now_ms
        bucket = self._bucket(level, now_ms)
        bucket.fill(rate, rate * self._burst_s, now_ms)
        strict = context.api_version >= (DRAFTED_SPECS[context.api_key].strict_quota_from or 0)
        rejected: set[str] = set()
        for decided in _in_order(context.api_key, elements):
            if decided.element in charges.paid:
                continue
            if strict and bucket.tokens < 0:
                rejected.add(decided.element)
            else:
                bucket.tokens -= decided.mutations or 0
                charges.paid.add(decided.element)
            if bucket.tokens < 0 and (not strict or rejected):
                charges.throttle_ms = _until_zero_ms(bucket.tokens, rate)
                charges.since_ms = now_ms
        if not rejected:
            return elements
        return [_rejected(d) if d.element in rejected else d for d in elements]

    def _bucket(self, level: QuotaLevel, now_ms: int) -> _Bucket:
        bucket = self._buckets.pop(level, None)
        if bucket is None or now_ms - bucket.filled_ms > _EXPIRES_AFTER_MS:
            bucket = _Bucket()
        self._buckets[level] = bucket
        while len(self._buckets) > _BUCKETS_MAX:
            self._buckets.popitem(last=False)
        return bucket


def _rejected(decided: Decided) -> Decided:
    return replace(decided, outcome=EXCEEDED, records=(), following=())


def _in_order(api_key: int, elements: Sequence[Decided]) -> Sequence[Decided]:
    """Return the elements to charge, in Kafka's order."""
    charged = {_topic(d): d for d in elements if d.mutations is not None}
    if api_key not in _CHARGED_IN_HASH_ORDER:
        return list(charged.values())
    return [charged[name] for name in mutable_hash_order(charged)]


def _topic(decided: Decided) -> str:
    for record in decided.records:
        if isinstance(record, DeletionMarkerRecord):
            return record.topic  # The element may be a topic id.
    return decided.element


def _until_zero_ms(tokens: float, rate: float) -> int:
    """Return the time until a bucket is at zero again. As in Kafka, 0 if the rate is 0."""
    if rate <= 0:
        return 0
    return math.floor(min(2**31 - 1, -tokens / rate * 1000 + 0.5))
