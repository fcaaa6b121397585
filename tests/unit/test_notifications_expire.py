"""Change notifications go after fifteen minutes, not before."""

from __future__ import annotations

from controller.notifications import EXPIRE_AFTER_MS, expired
from zookeeper_client.wire import Stat, ZnodeData


def znode(made_ms: int) -> ZnodeData:
    return ZnodeData(b"{}", Stat(1, 1, made_ms, made_ms, 0, 0, 0, 0, 2, 0, 1))


def test_only_what_is_older_than_fifteen_minutes_goes() -> None:
    """
    A notification that a slow broker may still need stays.
    """
    now = 10 * EXPIRE_AFTER_MS
    znodes = {
        "/config/changes/config_change_0000000001": znode(now - EXPIRE_AFTER_MS - 1),
        "/config/changes/config_change_0000000002": znode(now - EXPIRE_AFTER_MS),
        "/config/changes/config_change_0000000003": None,
    }
    assert expired(znodes, now) == ["/config/changes/config_change_0000000001"]
