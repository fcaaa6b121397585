"""The cases of every API that needs no data plane.

The cases of an API are `CASES` in the module that is named after its `ApiKey`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Final

from bridgehead.kafka_wire.api_key import ApiKey
from broker_proxy.requests.routing import WITHOUT_DATA_PLANE
from tests.integration.conformance.case import Case

# Envelope has no cases, because only the controller accepts it;
# tests/data/client_envelopes.jsonl.gz covers it. APIs that need a data plane have no cases;
# tests/recordings/data-plane.jsonl.gz covers those that clients use.
_KEYS: Final = sorted(
    map(ApiKey, set(WITHOUT_DATA_PLANE["shipped"]) - {ApiKey.ENVELOPE}), key=lambda key: key.name
)
CASES: Final[Mapping[ApiKey, tuple[Case, ...]]] = {
    key: import_module(f"{__package__}.{key.name.lower()}").CASES for key in _KEYS
}
