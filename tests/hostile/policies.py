"""A policy that hangs, spins or ends its thread: everything that calls no policy is served.

A policy is an operator's own code, so it may do all this by mistake. A client decides when, by the
name of the topic that it creates.
"""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.hostile.family import Report, cluster, node_logs
from tests.hostile.target import bridgehead

TIMEOUT_MS: Final = 700
STUCK_MAX: Final = 8  # calls of a policy that may be stuck, as docs/policies.md says
RESPONDED_WITHIN_S: Final = 10.0
SERVED_WITHIN_S: Final = 3.0
_POLICY: Final = """
import threading

from bridgehead.policy import TopicManagementPolicy


class Stuck(TopicManagementPolicy):
    def configure(self, configs): ...

    def validate_create_topic(self, request, cluster):
        if request.topic.startswith("waits-"):
            threading.Event().wait()
        while request.topic.startswith("spins-"):
            pass
        if request.topic.startswith("ends-"):
            raise SystemExit(3)

    def validate_alter_topic(self, request, cluster): ...

    def validate_delete_topic(self, request, cluster):
        threading.Event().wait()

    def validate_delete_records(self, request, cluster): ...

    def close(self):
        threading.Event().wait()
"""


class Bystander:
    """A client whose requests call no policy: it writes credentials and lists topics."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self.served = 0
        self.longest_s = 0.0
        self.failures: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> Bystander:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _work(self) -> None:
        admin = AdminClient(self._settings)
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        while not self._stop.wait(0.02):
            began = time.monotonic()
            try:
                upsertion = UserScramCredentialUpsertion("carol", info, b"carols-secret")
                admin.alter_user_scram_credentials([upsertion])["carol"].result(timeout=30)
                admin.list_topics(timeout=30)
            except KafkaException as error:
                self.failures.append(str(error))
            self.served += 1
            self.longest_s = max(self.longest_s, time.monotonic() - began)


def _created(admin: AdminClient, *names: str) -> tuple[list[int], float]:
    """Create topics, each in its own request. Return the error codes, and the time in seconds."""
    began, codes = time.monotonic(), []
    futures = [admin.create_topics([NewTopic(name, 1, 1)], request_timeout=30) for name in names]
    for name, future in zip(names, futures, strict=True):
        try:
            future[name].result(timeout=40)
            codes.append(0)
        except KafkaException as error:
            codes.append(error.args[0].code())
    return codes, time.monotonic() - began


def _hang(admin: AdminClient, report: Report, word: str) -> None:
    """Let more calls of the controller's policy hang than may be stuck."""
    names = [f"{word}-{number}-{time.monotonic_ns()}" for number in range(STUCK_MAX + 4)]
    codes, seconds = _created(admin, *names)
    wrong = [code for code in codes if code != KafkaError.UNKNOWN]
    report.expect(not wrong, f"{word}: the errors are {codes}")
    report.expect(seconds < RESPONDED_WITHIN_S, f"{word}: the responses took {seconds:.1f} s")
    codes, seconds = _created(admin, "calm")
    report.expect(
        codes == [KafkaError.UNKNOWN] and seconds < SERVED_WITHIN_S,
        f"{word}: a further request got {codes} after {seconds:.1f} s",
    )


def hang_the_policy(folder: Path, report: Report) -> None:
    """Hang the policy of one controller after the other."""
    (folder / "stuck_policy.py").write_text(_POLICY)
    data = folder / "data"
    here = ("--data-dir", str(data))
    options = (
        *("--override", "topic.management.policy.class.name=stuck_policy.Stuck"),
        *("--override", f"bridgehead.policy.timeout.ms={TIMEOUT_MS}"),
    )
    with cluster(data, *options, classes=folder) as document:
        settings = {"bootstrap.servers": document["bootstrap_servers"], "log_level": 0}
        pids = {node["id"]: node["pid"] for node in document["brokers"]}
        admin = AdminClient(settings)
        report.expect(_created(admin, "before")[0] == [0], "no topic can be created at first")
        with Bystander(settings) as bystander:
            codes, _ = _created(admin, "ends-the-thread", "after-the-end")
            report.expect(codes == [KafkaError.UNKNOWN, 0], f"SystemExit: the errors are {codes}")
            stuck: set[int] = set()  # the brokers whose policies hang
            for word in ("waits", "spins"):
                _hang(admin, report, word)
                shown = json.loads(bridgehead("controller", "show", "--json", *here).stdout)
                stuck.add(shown["controller_id"])
                bridgehead("controller", "move", str(min(pids.keys() - stuck)), *here)
                codes, _ = _created(admin, f"after-{word}")
                report.expect(codes == [0], f"{word}: the next controller answers {codes}")
        report.expect(not bystander.failures, f"not served: {bystander.failures[:3]}")
        longest = bystander.longest_s
        report.expect(
            longest < RESPONDED_WITHIN_S, f"a client without policy waited {longest:.1f} s"
        )
        alive = [broker for broker, pid in pids.items() if Path(f"/proc/{pid}").exists()]
        report.expect(alive == list(pids), f"only the brokers {alive} are alive")
        began = time.monotonic()
        bridgehead("down", *here)
        stopped_s = time.monotonic() - began
        report.expect(stopped_s < 30, f"a cluster with stuck policies stops in {stopped_s:.0f} s")
        log = node_logs(data)
        report.expect("unexpected error" not in log, "the log of a node has an unexpected error")
    report.figures.append(
        f"hanging policies: another client was served {bystander.served} times, and waited "
        f"{longest:.1f} s at most; the cluster stopped in {stopped_s:.1f} s"
    )
