"""The transactions that write metadata, with their path and their check of the epoch.

A transaction is omitted if all its writes of metadata are direct writes that W6
(only_controllers_write) allows, or if a KRaft controller made them in its term.
"""

from __future__ import annotations

from typing import Final

from judge.sql import IS_DIRECT
from pipeline.query import query
from pipeline.table import Table

_ADMIN_WRITES: Final = f"""
SELECT /*+ BROADCAST(s), BROADCAST(t) */ c.run, c.zxid, c.session, c.kind,
  get(filter(c.operations, o -> o.role = 'admin'
    AND o.kind IN ('create', 'set', 'delete', 'set_acl')), 0).path AS path,
  exists(c.operations, o -> o.kind = 'check' AND o.role = 'epoch') AS checked,
  exists(c.operations, o -> o.kind = 'check' AND o.role = 'epoch' AND o.version >= 0) AS fenced
FROM commits c JOIN runs r ON c.run = r.run AND c.zxid > r.first_zxid
LEFT JOIN sessions s ON c.run = s.run AND c.session = s.session
LEFT JOIN terms t ON c.run = t.run AND c.session = t.session AND t.is_kraft
  AND c.zxid >= t.zxid AND c.zxid < t.until
WHERE NOT c.failed AND t.zxid IS NULL AND exists(c.operations, o -> o.role = 'admin'
  AND o.kind IN ('create', 'set', 'delete', 'set_acl')
  AND NOT (coalesce(s.writes_directly, false) AND {IS_DIRECT}))
"""

ADMIN_WRITES: Final = Table(
    name="gold/admin_writes",
    inputs=("silver/commits", "silver/sessions", "silver/terms", "runs"),
    schema="run STRING, zxid BIGINT, session STRING, kind STRING, path STRING, checked BOOLEAN, "
    "fenced BOOLEAN",
    build=query(_ADMIN_WRITES),
)
