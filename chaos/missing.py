"""Scenarios that do not exist, each with the reason. docs/chaos.md lists them."""

from __future__ import annotations

from typing import Final

_FAILPOINT: Final = "needs failpoints in the node, which do not exist"
_HOSTILE: Final = "`make attack` and tests/hostile do it"

MISSING: Final[tuple[tuple[str, str], ...]] = (
    ("kill between commit and answer, kill while loading", _FAILPOINT),
    ("a replaced controller that fails in its event handler", _FAILPOINT),
    ("a controller whose event loop is blocked forever", "the node has no watchdog"),
    ("all controllers down", "every broker is a candidate here, so no broker would be left"),
    ("a lost notification to a broker", "the proxy does not lose notifications yet"),
    ("a lost reply, and another controller elected before the write is resent", _FAILPOINT),
    ("the reply of an election lost", "the proxy loses writes of an active controller only"),
    ("a transaction above jute.maxbuffer", "tests/unit/controller covers the limit"),
    ("ZooKeeper's leader killed inside a large transaction", _FAILPOINT),
    ("a broker that learns of a new controller too late", "the proxy does not delay watches yet"),
    ("packets dropped while the process is also killed", "needs rights to change the firewall"),
    ("links that lose packets", "the proxy works on streams, where nothing is lost"),
    ("replayed, late and reordered Envelopes", "the simulated network does not replay yet"),
    ("a large request before many small ones", "`make bench` measures it"),
    ("another cluster at the controller's address", "tests/integration covers the refusal"),
    ("the member of ZooKeeper that serves the controller killed", "no witness shows its effect"),
    ("slow fsync, power loss of ZooKeeper", "needs strace or lazyfs"),
    ("a follower of ZooKeeper that lags", "the links between members have no proxy"),
    ("credentials that ZooKeeper rejects at a reconnect", "not implemented"),
    ("a path that ZooKeeper forbids", "tests/integration/test_zookeeper_access.py covers it"),
    ("a rolling upgrade, with and without failover", "tests/integration/test_upgrade.py does it"),
    ("a broker that restarts within its session", "tests/integration/test_broker_session.py"),
    ("brokers of different versions", "there is one version"),
    ("many clients that name unknown topics", "not implemented"),
    ("malformed Envelopes, Envelopes from clients, a forged principal", _HOSTILE),
    ("configs of another broker, difficult names", "tests/integration/conformance covers them"),
    (
        "rights revoked while a request is in flight, a broker without CLUSTER_ACTION",
        "not implemented",
    ),
    ("a policy that hangs or throws", "tests/integration/test_policies.py covers it"),
    ("tokens that expire during a request", "not implemented"),
    ("a full disk, damaged event logs", "tests/integration and tests/golden cover them"),
    ("no free file descriptors", "tests/integration/test_connection_limits.py covers it"),
)
