"""The client and the brokers have the same names and codes of ACL operations.

The client has an enum. The brokers have a Literal, so that mypy can check authorizers; a Literal
cannot be made from an enum.
"""

from __future__ import annotations

from bridgehead.admin import AclOperation
from cluster_model.acls.authorization import OPERATION_CODES


def test_both_sides_have_the_same_operations() -> None:
    codes = {each.name: each.value for each in AclOperation}
    assert (codes.pop("UNKNOWN"), codes.pop("ANY")) == (0, 1)  # never part of an ACL
    assert codes == OPERATION_CODES
