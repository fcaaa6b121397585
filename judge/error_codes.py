"""What an error code tells a client: the write is done (OK), or its outcome is unknown (INFO).

After any other code, nothing was done.
"""

from __future__ import annotations

from typing import Final

OK_CODES: Final = frozenset({0})
# -1 UNKNOWN_SERVER_ERROR, 7 REQUEST_TIMED_OUT (KIP-4: it may finish later), 13 NETWORK_EXCEPTION,
# 41 NOT_CONTROLLER (an earlier attempt of the same Envelope may have been executed).
INFO_CODES: Final = frozenset({-1, 7, 13, 41})
# A client that retries may get these because of its own earlier success:
# 3 UNKNOWN_TOPIC_OR_PARTITION, 36 TOPIC_ALREADY_EXISTS, 37 INVALID_PARTITIONS. D2 does not judge
# them in a client's history.
RETRY_CODES: Final = frozenset({3, 36, 37})
