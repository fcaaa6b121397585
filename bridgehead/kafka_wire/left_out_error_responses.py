"""What APIs that no broker of ours serves answer to somebody who is not logged in yet.

Kafka's login refuses each request that comes in its middle in the API's own shape. Here are those
shapes that have one code for all; docs/differences.md names the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bridgehead.kafka_wire.apis import API_SPECS
from bridgehead.kafka_wire.errors import ErrorCode

_JOIN_GROUP, _INIT_PRODUCER_ID, _ADD_PARTITIONS = 11, 22, 24
# Fetch, UpdateMetadata, ControlledShutdown, JoinGroup, Heartbeat, LeaveGroup, SyncGroup,
# InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, AlterPartition, AllocateProducerIds;
# from which version on.
_FROM: Final[Mapping[int, int]] = {
    **dict.fromkeys((1, 6, 7, _JOIN_GROUP, 12, 13, 14, _INIT_PRODUCER_ID, 25, 26, 56, 67), 0),
    _ADD_PARTITIONS: 4,
}


def left_out_error_response(api_key: int, version: int, error: ErrorCode) -> Any | None:
    """Return the response message that says `error`; None where there is no one code for it."""
    if version < _FROM.get(api_key, version + 1):
        return None
    response = API_SPECS[api_key].response(error_code=int(error))
    if api_key == _INIT_PRODUCER_ID:
        response.producer_id = response.producer_epoch = -1
    if api_key == _JOIN_GROUP and version >= 7:
        response.protocol_name = None
    return response
