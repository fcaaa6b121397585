"""Histories by hand, for the tests of the judge: what was logged, what clients were told."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from chaos.history import History
from chaos.properties import (
    acknowledged_is_kept,
    answer_tells_the_truth,
    at_most_once,
    every_write_is_fenced,
)
from chaos.verdicts import Property
from chaos.witness import LoggedOperation, Transaction

CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS = 19, 20, 37
ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS = 33, 44
NONE, UNKNOWN_TOPIC, REQUEST_TIMED_OUT, TOPIC_EXISTS = 0, 3, 7, 36
CONTROLLER, STRANGER = 0xA, 0xB
ME, ANOTHER = (1, "abc", 1), (2, "def", 9)
Identity = tuple[int, str, int]


def multi(zxid: int, *operations: LoggedOperation, session: int = CONTROLLER) -> Transaction:
    return Transaction(zxid, session, zxid, 0, "multi", operations)


def create(path: str, data: bytes = b"") -> LoggedOperation:
    return LoggedOperation("create", path, data, 0)


def check(version: int = 1) -> LoggedOperation:
    return LoggedOperation("check", "/controller_epoch", None, version)


def outcomes(number: int, *ends: tuple[Identity, str, int]) -> LoggedOperation:
    entries = [
        {
            "id": list(identity),
            "request": f"r{identity[2]}",
            "elements": [[name, error, None, None]],
        }
        for identity, name, error in ends
    ]
    data = json.dumps({"epoch": 1, "outcomes": entries}).encode()
    return create(f"/bridgehead/outcomes/{number:010}", data)


ELECTED = multi(1, create("/controller"), LoggedOperation("set", "/controller_epoch", b"1", 1))


def created(zxid: int, name: str = "orders", by: Identity = ME) -> Transaction:
    effect = create(f"/brokers/topics/{name}")
    return multi(zxid, check(), outcomes(zxid, (by, name, NONE)), effect)


def removed(zxid: int, name: str = "orders") -> Transaction:
    return multi(zxid, check(), LoggedOperation("delete", f"/brokers/topics/{name}"))


def told(
    error: int,
    *,
    zxid: int,
    image_zxid: int = 1,
    api_key: int = CREATE_TOPICS,
    identity: Identity = ME,
    name: str = "orders",
) -> list[Mapping[str, Any]]:
    request_id = f"r{identity[2]}"
    decided = {
        "kind": "request_decided",
        "request_id": request_id,
        "identity": list(identity),
        "api_key": api_key,
        "image_zxid": image_zxid,
        "zxid": zxid,
        "elements": [[name, error]],
        "validate_only": False,
    }
    answered = {"kind": "answered", "request_id": request_id, "error": None, "closed": False}
    return [decided, {**answered, "zxid": zxid}]


def violations(
    module: Property, transactions: Sequence[Transaction], events: Sequence[Mapping[str, Any]] = ()
) -> tuple[str, ...]:
    return module.check(History([ELECTED, *transactions], events)).violations


W2, D1 = every_write_is_fenced.PROPERTY, acknowledged_is_kept.PROPERTY
D3, D5 = at_most_once.PROPERTY, answer_tells_the_truth.PROPERTY
