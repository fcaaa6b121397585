"""Scenarios that do not exist, each with the reason. docs/chaos.md lists them."""

from __future__ import annotations

from typing import Final

_ELECTIONS: Final = "tests/integration/test_fenced_store.py covers it on a real ZooKeeper"
_HOSTILE: Final = "`make attack` and tests/hostile cover them"

MISSING: Final[tuple[tuple[str, str], ...]] = (
    (
        "a replaced controller that fails in its event handler",
        "the harness can pause or kill a process at a given point, but cannot raise an error there",
    ),
    (
        "all controllers down",
        "every broker is also a candidate for controller, so no broker would be left",
    ),
    (
        "a lost notification to a broker",
        "the proxies between nodes and ZooKeeper can lose only multis and replies to multis",
    ),
    ("a lost reply, and another controller elected before the write is resent", _ELECTIONS),
    ("a lost reply to the multi of an election", _ELECTIONS),
    ("a transaction above jute.maxbuffer", _ELECTIONS),
    (
        "ZooKeeper's leader killed inside a large transaction",
        "the harness can kill a node at a given point, but not ZooKeeper",
    ),
    (
        "a broker that learns of a new controller too late",
        "the proxies do not delay single notifications",
    ),
    ("a process killed while its packets are dropped", "it needs the right to change the firewall"),
    ("links that lose packets", "the proxies forward TCP streams, in which no packet is lost"),
    ("replayed Envelopes", "tests/hostile/test_replay.py covers them, with a failover"),
    ("reordered replies to Envelopes", "tests/integration/test_envelope_channel.py covers them"),
    (
        "a large request before many small ones",
        "it needs no fault. It is not tested: `make bench` sends one kind of request at a time",
    ),
    (
        "another cluster at the controller's address",
        "Envelopes carry no cluster id. With TLS, tests/integration/test_inter_broker_channel.py "
        "covers a controller with another certificate",
    ),
    (
        "a kill of the ZooKeeper member that serves the controller",
        "no evidence would show the effect of the kill",
    ),
    (
        "a power loss of ZooKeeper",
        "it needs a file system that drops unsynced writes, such as lazyfs",
    ),
    ("a follower of ZooKeeper that lags", "the links between members have no proxy"),
    (
        "credentials that ZooKeeper rejects at a reconnect",
        "no fault changes ZooKeeper's users while the cluster runs",
    ),
    ("a path that ZooKeeper forbids", "tests/integration/test_zookeeper_access.py covers it"),
    ("a rolling upgrade", "tests/integration/test_upgrade.py covers it, without a fault"),
    ("brokers of different releases", "Bridgehead has one release"),
    (
        "many clients that name unknown topics",
        "tests/integration/test_internal_topics.py covers them, without a fault",
    ),
    ("Envelopes from clients; forged principals", _HOSTILE),
    (
        "a client that sets the CreateTopics flag for bypassing the policy",
        "tests/integration/test_policies.py covers it",
    ),
    ("configs of another broker; difficult names", "tests/integration/conformance covers them"),
    ("rights revoked while a request is in flight", "no workload revokes rights of its users"),
    (
        "a broker without CLUSTER_ACTION",
        "tests/integration/test_inter_broker_channel.py covers it",
    ),
    ("a policy that hangs or throws", "tests/integration/test_policies.py covers it"),
    (
        "tokens that expire during a failover",
        "tests/integration/test_delegation_tokens.py covers expiry and failover separately",
    ),
    ("records that a full disk rejects", "no workload produces records"),
    ("damaged event logs", "tests/golden covers them"),
    ("no free file descriptors", "no fault lowers the number of files that a process may open"),
)
