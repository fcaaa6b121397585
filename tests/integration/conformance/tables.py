"""Every table: the one list that is asked."""

from __future__ import annotations

from typing import Final

from tests.integration.conformance import (
    alter_configs,
    cluster_and_users,
    create_partitions,
    create_topics,
    delete_topics,
    describe_configs,
    groups,
    incremental_alter_configs,
    metadata,
    partitions,
    security,
)
from tests.integration.conformance.case import Table

TABLES: Final[tuple[Table, ...]] = (
    create_topics.TABLE,
    delete_topics.TABLE,
    create_partitions.TABLE,
    alter_configs.TABLE,
    incremental_alter_configs.TABLE,
    describe_configs.TABLE,
    metadata.TABLE,
    *groups.TABLES,
    *partitions.TABLES,
    *cluster_and_users.TABLES,
    *security.TABLES,
)
