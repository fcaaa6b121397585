"""The client's names and codes of ACL operations are those of the brokers.

The brokers' names are a Literal, so that mypy can check authorizers. A Literal cannot be made from
the client's enum.
"""

from __future__ import annotations

from bridgehead.admin import AclOperation
from cluster_model.authorization import OPERATION_CODES


def test_both_sides_have_the_same_operations() -> None:
    codes = {each.name: each.value for each in AclOperation}
    assert (codes.pop("UNKNOWN"), codes.pop("ANY")) == (0, 1)  # never part of an ACL
    assert codes == OPERATION_CODES
