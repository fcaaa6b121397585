"""Scenarios that do not exist, each with the reason. docs/chaos.md lists them."""

from __future__ import annotations

from typing import Final

_ONE_FAULT: Final = "a scenario has one fault at a time"
_HOSTILE: Final = "`make attack` and tests/hostile cover them"

MISSING: Final[tuple[tuple[str, str], ...]] = (
    (
        "a replaced controller that fails in its event handler",
        "a failpoint can only stop a process; it cannot raise an error",
    ),
    ("all controllers down", "every broker is a candidate here, so no broker would be left"),
    ("a lost notification to a broker", "the proxy does not lose notifications yet"),
    ("a lost reply, and another controller elected before the write is resent", _ONE_FAULT),
    ("the reply of an election lost", "the proxy loses only the writes of an active controller"),
    ("a transaction above jute.maxbuffer", "tests/unit/controller covers the limit"),
    ("ZooKeeper's leader killed inside a large transaction", _ONE_FAULT),
    ("a broker that learns of a new controller too late", "the proxy does not delay watches yet"),
    ("a process killed while its packets are dropped", "needs rights to change the firewall"),
    ("links that lose packets", "the proxy works on streams, where nothing is lost"),
    ("replayed, late and reordered Envelopes", "the simulated network does not replay yet"),
    ("a large request before many small ones", "`make bench` measures it"),
    ("another cluster at the controller's address", "tests/integration covers the refusal"),
    ("a kill of the ZooKeeper member that serves the controller", "no evidence shows its effect"),
    (
        "a power loss of ZooKeeper",
        "needs a file system such as lazyfs",
    ),
    ("a follower of ZooKeeper that lags", "the links between members have no proxy"),
    ("credentials that ZooKeeper rejects at a reconnect", "not implemented"),
    ("a path that ZooKeeper forbids", "tests/integration/test_zookeeper_access.py covers it"),
    ("a rolling upgrade, with and without failover", "tests/integration/test_upgrade.py covers it"),
    (
        "a broker that restarts within its session",
        "tests/integration/test_broker_session.py covers it",
    ),
    ("brokers of different versions", "there is one version"),
    ("many clients that name unknown topics", "not implemented"),
    ("Envelopes from clients, a forged principal", _HOSTILE),
    ("configs of another broker, difficult names", "tests/integration/conformance covers them"),
    (
        "rights revoked while a request is in flight, a broker without CLUSTER_ACTION",
        "not implemented",
    ),
    ("a policy that hangs or throws", "tests/integration/test_policies.py covers it"),
    ("tokens that expire during a request", "not implemented"),
    ("records that a full disk does not take", "no workload produces records"),
    ("damaged event logs", "tests/golden covers them"),
    ("no free file descriptors", "tests/integration/test_connection_limits.py covers it"),
)
