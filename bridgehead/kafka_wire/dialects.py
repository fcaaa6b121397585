"""Dialects: which APIs and versions there are on a listener, and what they look like.

`shipped` is Kafka 3.9's ZooKeeper broker. `drafted` is what KIP-4, KIP-201 and KIP-590 said before
they were built: other bytes under some of Kafka's own versions, versions that never came, and three
APIs of KIP-4 under keys of ours. What no draft names is the same in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType
from typing import Final

from bridgehead.kafka_wire.apis import API_SPECS, ApiSpec
from bridgehead.kafka_wire.messages.drafted import (
    alter_acls,
    alter_topics,
    create_delegation_token,
    create_topics,
    delete_records,
    delete_topics,
    envelope,
    list_acls,
)

ALTER_TOPICS: Final = 10001
LIST_ACLS: Final = 10002
ALTER_ACLS: Final = 10003


def _other_bytes(key: int, messages: ModuleType) -> ApiSpec:
    """An API of Kafka's whose bytes differ in some version."""
    spec = API_SPECS[key]
    return replace(
        spec,
        request=getattr(messages, f"{spec.name}Request"),
        response=getattr(messages, f"{spec.name}Response"),
    )


def _new(key: int, name: str, messages: ModuleType, *, forwardable: bool) -> ApiSpec:
    """An API that Kafka never had: one version, not flexible."""
    return ApiSpec(
        key=key,
        name=name,
        enum_name=messages.__name__.rpartition(".")[2].upper(),
        min_version=0,
        max_version=0,
        flexible_from=None,
        request=getattr(messages, f"{name}Request"),
        response=getattr(messages, f"{name}Response"),
        forwardable=forwardable,
    )


DRAFTED_SPECS: Final[Mapping[int, ApiSpec]] = {
    **API_SPECS,
    **{
        spec.key: spec
        for spec in (
            _other_bytes(19, create_topics),
            _other_bytes(20, delete_topics),
            _other_bytes(21, delete_records),
            _other_bytes(38, create_delegation_token),
            _other_bytes(58, envelope),
            # KIP-590 bumps these to versions that Kafka never had; they read and write as before.
            replace(API_SPECS[39], max_version=3),  # RenewDelegationToken
            replace(API_SPECS[40], max_version=3),  # ExpireDelegationToken
            replace(API_SPECS[44], max_version=2),  # IncrementalAlterConfigs
            _new(ALTER_TOPICS, "AlterTopics", alter_topics, forwardable=True),
            _new(LIST_ACLS, "ListAcls", list_acls, forwardable=False),
            _new(ALTER_ACLS, "AlterAcls", alter_acls, forwardable=True),
        )
    },
}
SPECS: Final[Mapping[str, Mapping[int, ApiSpec]]] = {
    "shipped": API_SPECS,
    "drafted": DRAFTED_SPECS,
}
DIALECTS: Final = tuple(SPECS)
