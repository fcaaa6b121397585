"""Generated mutants that no test can kill, or that no test should, and why.

A key is the text that `make prove-kips` prints for the mutant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_NAMED = "only a response by topic id has no name, and this request is not by id"
_LOGGED = "the argument only decides what the authorizer's log has"
EXPLAINED: Final[Mapping[str, str]] = {
    "bridgehead.admin.requests:BrokerResponse.done: condition error is None is False": (
        "an error that is None equals the success"
    ),
    "bridgehead.admin.calls.topics:topics_of: without the operand ''": _NAMED,
    "bridgehead.admin.calls.topics:topics_of: '' becomes 'x'": _NAMED,
    "bridgehead.admin.calls.topics:topics_of: without the operand topic.name": _NAMED,
    "bridgehead.admin.calls.groups:_ask_coordinator: min_version is empty": (
        "only the offsets of a group need a version, and the row is about groups"
    ),
    "bridgehead.admin.links:Links._note: 16 becomes 17": (
        "the power is capped only so that the number stays small; the wait has its own maximum"
    ),
    "bridgehead.admin.links:Links._open: login is empty": (
        "the rows of KIP-117 have no login; test_logins.py has"
    ),
    "broker_proxy.apis.admin.metadata:Metadata._build: False becomes True": _LOGGED,
    "broker_proxy.apis.admin.list_acls:ListAcls._may_see_all: False becomes True": _LOGGED,
    "broker_proxy.forwarding.manager:ForwardingManager._envelope: 1 becomes 2": (
        "one millisecond more for a request whose time is over"
    ),
    "controller.loop.policy_evaluation:_Proposal.calls: without the operand isinstance(check, "
    "_CHANGES)": "a request that deletes topics has no changes, so nobody reads the list",
    "broker_proxy.requests.relay:Relay._relay: without the operand forwarded.response is not "
    "None": "the step RELAY always comes with a response",
    "node.assembly.policy_runner:PolicyRunner._call: 1000 becomes 1001": (
        "the time limit is a thousandth shorter"
    ),
    "node.__main__:main: 'node' becomes 'nodex'": "the name of the program in its help",
}
