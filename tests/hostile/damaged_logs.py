"""Log files that somebody damaged while the cluster was stopped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.hostile.family import Report, cluster, node_logs

RECORDS: Final = 200
EPOCHS: Final = "leader-epoch-checkpoint"
PARTITION: Final = "partition.metadata"
INDEX: Final = "00000000000000000009.index"
OFFSETS: Final = "replication-offset-checkpoint"


class Damage(NamedTuple):
    """A change in a partition's folder; the log of the node must contain `named`."""

    topic: str
    change: Callable[[Path], object]
    named: str


def _epochs(content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / EPOCHS).write_bytes(content)


def _damage_id(folder: Path) -> None:
    (folder / PARTITION).write_text("topic_id: x\n")


def _garbled_indexes(folder: Path) -> None:
    for path in (*folder.glob("*.index"), *folder.glob("*.timeindex")):
        path.write_bytes(b"\xff" * 24)


DAMAGES: Final = (
    Damage("whole", lambda _: None, ""),
    Damage("epochs-word", _epochs(b"0\n1\nx\n"), EPOCHS),
    Damage("epochs-bytes", _epochs(b"0\n1\n\xff\xfe 7\n"), EPOCHS),
    Damage("epochs-huge", _epochs(b"0\n1\n4294967296 7\n"), EPOCHS),
    Damage("id", _damage_id, PARTITION),
    Damage("folder", lambda folder: (folder / "stray.log").mkdir(), "stray.log"),
    Damage("index", lambda folder: (folder / INDEX).mkdir(), INDEX),
    Damage("absurd", lambda folder: (folder / f"{'9' * 26}.log").touch(), "9" * 26),
    Damage("beyond", lambda folder: (folder / f"{'9' * 20}.log").touch(), "9" * 20),
    Damage("snapshot", lambda folder: (folder / "x.snapshot").touch(), "x.snapshot"),
    Damage("swap", lambda folder: (folder / "x.swap").touch(), "x.swap"),
    Damage("indexes", _garbled_indexes, ""),
)


def damage_the_logs(folder: Path, report: Report) -> None:
    """Write records, stop, damage each topic in another way, start, and read everything."""
    data = folder / "data"
    options = ("--brokers=1",)
    with cluster(data, *options) as document:
        servers = str(document["bootstrap_servers"])
        admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        topics = [NewTopic(damage.topic, 1, 1) for damage in DAMAGES]
        for created in admin.create_topics(topics).values():
            created.result(timeout=60)
        producer = Producer({"bootstrap.servers": servers, "acks": "all", "log_level": 0})
        for number in range(RECORDS):
            for damage in DAMAGES:
                producer.produce(damage.topic, b"%d" % number, partition=0)
        assert producer.flush(60) == 0
    logs = data / "nodes" / "1" / "logs"
    for damage in DAMAGES:
        damage.change(logs / f"{damage.topic}-0")
    lines = ["0", "4", "whole 0", "whole 0 -7", "whole 0 99999999999999999999", "whole 0 200", ""]
    (logs / OFFSETS).write_bytes("\n".join(lines).encode() + b"\xff")
    (logs / "recovery-point-offset-checkpoint").unlink(missing_ok=True)
    (logs / "recovery-point-offset-checkpoint").mkdir()
    (logs / "a b-0").mkdir()
    with cluster(data, *options) as document:
        servers = str(document["bootstrap_servers"])
        for damage in DAMAGES:
            values = _read(servers, damage.topic)
            expected = [b"%d" % number for number in range(RECORDS)]
            report.expect(values == expected, f"{damage.topic}: {len(values)} of {RECORDS} records")
        text = node_logs(data)
    for named in (damage.named for damage in DAMAGES):
        report.expect(named in text, f"node.log does not name {named}")
    report.expect(OFFSETS in text, f"node.log does not name {OFFSETS}")
    report.expect("Traceback" not in text, f"a traceback: {text.partition('Traceback')[2][:800]}")


def _read(servers: str, topic: str) -> list[bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "reader",
            "enable.auto.commit": False,  # One broker cannot have the topic of offsets.
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes] = []
    try:
        while len(values) < RECORDS and (messages := consumer.consume(RECORDS, timeout=20)):
            values += [value for message in messages if (value := message.value()) is not None]
    except KafkaException:
        pass
    finally:
        consumer.close()
    return values
