"""D6: a record that was acknowledged with acks=all is in its partition's log at the end.

A leader that stops cleanly reports its log. The report of a leader that was killed while it stopped
is ignored, because its last events may be missing. If several logs of a partition are reported, the
log with the highest leader epoch counts. A leader that restarts while there is no controller keeps
its epoch, so several logs may have the highest epoch: of these, the last one counts.
A record that was acknowledged in a later leader epoch than the log's is not judged, because the
leader of that epoch was killed. An acknowledged retry is recorded without a CRC, so any batch at
its offset is accepted. Records before the start of the log do not count as lost: retention or
DeleteRecords deleted them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from event_log.properties import UNKNOWN_CRC, Violation
from judge.history import Boot, Event, History, boot_of, place_of, row_of
from judge.properties.violations import violation

Partition = tuple[str, int]  # topic id, partition


def check(history: History) -> Iterator[Violation | None]:
    """Look up each acknowledgement in the log that counts."""
    logs = {name: (pages[0], _batches(pages)) for name, pages in _last_logs(history).items()}
    for event in history.of_kind["records_acknowledged"]:
        found = logs.get(_partition(event))
        if found is None or found[0]["leader_epoch"] < event["leader_epoch"]:
            continue
        wrong = _wrong(event, *found)
        if wrong is None:
            yield None
            continue
        first, last = event["base_offset"], event["base_offset"] + event["record_count"] - 1
        name = f"{event['topic']}-{event['partition_index']}"
        sentence = f"{name}: the acknowledged records {first} to {last} {wrong}"
        yield violation("D6", place_of(event), [row_of(event), row_of(found[0])], sentence)


def _partition(event: Event) -> Partition:
    return event["topic_id"], event["partition_index"]


def _last_logs(history: History) -> Mapping[Partition, Sequence[Event]]:
    """Return, for each partition, the `log_held` events of the log that counts, in order."""
    stopped = {boot_of(event) for event in history.of_kind["stopped"]}
    reports: dict[Partition, dict[Boot, list[Event]]] = {}
    for event in history.of_kind["log_held"]:
        if boot_of(event) not in stopped:
            continue
        reports.setdefault(_partition(event), defaultdict(list))[boot_of(event)].append(event)
    return {
        name: sorted(max(logs.values(), key=_order), key=lambda event: int(event["seq"]))
        for name, logs in reports.items()
    }


def _order(pages: Iterable[Event]) -> tuple[int, int, str, str]:
    """Sort key of the logs of one partition: the log that counts comes last."""
    return max((each["leader_epoch"], each["mono_ns"], *boot_of(each)) for each in pages)


def _batches(pages: Sequence[Event]) -> Mapping[int, int]:
    """Return the CRC of each batch by its first offset."""
    pairs = (batch.split(":") for page in pages for batch in page["batches"])
    return {int(offset): int(crc) for offset, crc in pairs}


def _wrong(event: Event, log: Event, batches: Mapping[int, int]) -> str | None:
    first, crc = event["base_offset"], event["crc"]
    if first < log["start_offset"]:
        return None
    if first + event["record_count"] > log["end_offset"]:
        return f"are missing in the log of node {log['node']}, which ends at {log['end_offset']}"
    held = batches.get(first)
    if held is not None and crc in (UNKNOWN_CRC, held):
        return None
    return f"differ from those in the log of node {log['node']}"
