"""Change notifications are purged after fifteen minutes."""

from __future__ import annotations

from controller.notifications import EXPIRE_AFTER_MS, expired
from zookeeper_client.wire import Stat, ZnodeData


def znode(created_ms: int) -> ZnodeData:
    return ZnodeData(b"{}", Stat(1, 1, created_ms, created_ms, 0, 0, 0, 0, 2, 0, 1).pack())


def test_notifications_expire_after_fifteen_minutes() -> None:
    now = 10 * EXPIRE_AFTER_MS
    znodes = {
        "/config/changes/config_change_0000000001": znode(now - EXPIRE_AFTER_MS - 1),
        "/config/changes/config_change_0000000002": znode(now - EXPIRE_AFTER_MS),
        "/config/changes/config_change_0000000003": None,
    }
    assert expired(znodes, now) == ["/config/changes/config_change_0000000001"]
