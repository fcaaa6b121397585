"""The words of authorizers and Kafka's names of codes are the same.

The codes are enums. Authorizers have Literals, so that mypy can check them; a Literal cannot be
made from an enum.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

import pytest

from bridgehead.admin import AclOperation, AclPermissionType, PatternType, ResourceType
from bridgehead.kafka_wire.acl_codes import operations_of
from cluster_model.acls.codes import (
    OPERATION_CODES,
    PATTERN_TYPE_CODES,
    PERMISSION_CODES,
    RESOURCE_TYPE_CODES,
)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (ResourceType, RESOURCE_TYPE_CODES),
        (PatternType, PATTERN_TYPE_CODES),
        (AclOperation, OPERATION_CODES),
        (AclPermissionType, PERMISSION_CODES),
    ],
)
def test_every_code_that_an_acl_may_have_is_a_word(
    kind: type[IntEnum], words: Mapping[str, int]
) -> None:
    codes = {code.name: code.value for code in kind}
    assert (codes.pop("UNKNOWN"), codes.pop("ANY")) == (0, 1)  # never part of an ACL
    assert codes.pop("MATCH", 2) == 2  # only in filters
    assert codes == words


def test_a_code_of_a_later_release_is_unknown() -> None:
    assert AclOperation(99) is AclOperation.UNKNOWN
    assert ResourceType(99) is ResourceType.UNKNOWN


def test_operations_that_were_not_requested_are_not_an_empty_set() -> None:
    assert operations_of(-(2**31)) is None
    assert operations_of(0) == frozenset()
    assert operations_of(1 << 3 | 1 << 8) == {AclOperation.READ, AclOperation.DESCRIBE}
