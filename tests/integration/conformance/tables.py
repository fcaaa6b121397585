"""The cases of every served API: `CASES` of the module that is named after its `ApiKey`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Final

from bridgehead.kafka_wire.api_key import ApiKey
from broker_proxy.routing import SHIPPED
from tests.integration.conformance.case import Case

# Only the controller opens an Envelope; tests/data/client_envelopes.jsonl.gz covers brokers.
_KEYS: Final = sorted(map(ApiKey, set(SHIPPED) - {ApiKey.ENVELOPE}), key=lambda key: key.name)
CASES: Final[Mapping[ApiKey, tuple[Case, ...]]] = {
    key: import_module(f"{__package__}.{key.name.lower()}").CASES for key in _KEYS
}
