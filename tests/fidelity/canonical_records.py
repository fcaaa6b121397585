"""Makes the records of Fetch responses comparable between runs and between compressors. Pure.

Batches are compared byte by byte. There are two exceptions: compressed records are compared after
decompression, and append times of the broker are not compared.
"""

from __future__ import annotations

import base64
from typing import Any, Final

from data_plane.records.batch import HEADER_BYTES, MAGIC_AT, MAGIC_V2, parse_header, split_batches
from data_plane.records.compression import Codec, decompress
from data_plane.records.message_sets import messages_of, parse_message

_INCOMPLETE: Final = "incomplete"


def canonical_records(encoded: str) -> list[Any]:
    """Return a JSON value for each batch or message. `encoded` is base64.

    If the data ends with an incomplete batch, the last two values are `incomplete` and its bytes.
    """
    data = base64.b64decode(encoded)
    records: list[Any] = []
    size = 0
    for batch in split_batches(data):
        records.append(_batch(batch) if batch[MAGIC_AT] == MAGIC_V2 else _message(batch))
        size += len(batch)
    return [*records, _INCOMPLETE, data[size:].hex()] if size < len(data) else records


def _batch(data: bytes) -> Any:
    header = parse_header(data)
    if header.codec is Codec.NONE and not header.has_log_append_time:
        return data.hex()
    fields = header._replace(length=0, crc=0)
    if header.has_log_append_time:
        fields = fields._replace(max_timestamp=0)
    return [fields, decompress(header.codec, data[HEADER_BYTES:]).hex()]


def _message(data: bytes) -> Any:
    message = parse_message(data)
    if message.codec_number == Codec.NONE:
        return data.hex()
    records = [
        [record.offset, record.timestamp, str(record[2:])] for record in messages_of(message)
    ]
    return [message.offset, message.attributes, message.timestamp, records]
