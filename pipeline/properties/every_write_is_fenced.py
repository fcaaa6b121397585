"""W2: every metadata write stands in a transaction that checks the controller's epoch.

Needs no unlucky timing: one missing check is seen in any run. Kafka itself does not fence creates,
ACLs, quotas and tokens.
"""

from __future__ import annotations

from typing import Final

from pipeline.property import Property

PROPERTY: Final = Property(
    id="W2",
    inputs=("gold/admin_writes",),
    sql="""
SELECT run, CASE WHEN NOT fenced THEN CAST(zxid AS STRING) END AS key,
  array(concat('zxid/', zxid)) AS rows,
  concat('zxid ', zxid, ': session ', session, ' wrote ', path,
    CASE WHEN checked THEN ' demanding no version of ' ELSE ' without checking ' END,
    '/controller_epoch') AS sentence
FROM admin_writes
""",
)
