"""A real `kafka-dump-log` reads the files of our data plane: logs, indexes and snapshots."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from bridgehead.cluster.java import find_java
from data_plane.records.batch import NewRecord, encode_batch
from data_plane.records.compression import Codec
from tests.fidelity.real_kafka import jars, reason_to_skip
from tests.unit.data_plane.logs import NOW, TOPIC_ID, directories

pytestmark = [pytest.mark.kafka, pytest.mark.long]
ROUNDS = 60


def dump(folder: Path, *options: str, kind: str) -> str:
    """Return what Kafka's tool prints about all files of a kind."""
    files = ",".join(str(path) for path in sorted(folder.glob(f"*.{kind}")))
    command = [str(find_java()), "-cp", f"{jars()}/*", "kafka.tools.DumpLogSegments"]
    done = subprocess.run(
        [*command, "--files", files, *options], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if reason := reason_to_skip():
        pytest.skip(reason)
    path = tmp_path_factory.mktemp("logs")
    logs = directories(path, segment_bytes=8000, index_interval_bytes=500)
    log = logs.get_or_create("topic", 0, TOPIC_ID)
    for number in range(ROUNDS):
        for codec in Codec:
            records = [NewRecord(NOW + number, b"key", b"value", ((b"h", b"c"),))] * 3
            sent = encode_batch(
                records,
                codec=codec,
                producer_id=7,
                producer_epoch=0,
                base_sequence=log.end_offset,
            )
            log.append(sent, 2, NOW)
    assert len(log.segments) > 2
    logs.close({log.name: log.end_offset})
    return log.folder


def test_kafka_reads_every_record_and_finds_every_batch_valid(folder: Path) -> None:
    text = dump(folder, "--deep-iteration", kind="log")
    batches = re.findall(r"^baseOffset: (\d+) .* isvalid: (\w+)$", text, re.MULTILINE)
    assert batches == [(str(3 * number), "true") for number in range(ROUNDS * len(Codec))]
    offsets = re.findall(r"^\| offset: (\d+) ", text, re.MULTILINE)
    assert offsets == [str(number) for number in range(3 * ROUNDS * len(Codec))]


@pytest.mark.parametrize("kind", ["index", "timeindex"])
def test_kafka_finds_no_mismatch_between_indexes_and_log(folder: Path, kind: str) -> None:
    assert "passed sanity check" in dump(folder, "--index-sanity-check", kind=kind)
    text = dump(folder, kind=kind)
    assert not re.search("mismatch|found|out of order", text, re.IGNORECASE)


def test_kafka_reads_the_state_of_the_producer(folder: Path) -> None:
    last = 3 * ROUNDS * len(Codec) - 1
    text = dump(folder, kind="snapshot")
    assert "producerId: 7 producerEpoch: 0 " in text
    assert f"lastSequence: {last} lastOffset: {last}" in text
