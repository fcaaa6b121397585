"""The whole attack: run all listed attempts, send mutated frames, then check the cluster."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from confluent_kafka.admin import AdminClient, NewTopic

from tests.hostile.attempt import Attempt
from tests.hostile.channel import channel_attempts
from tests.hostile.envelopes import envelope_attempts
from tests.hostile.logins import login_attempts
from tests.hostile.metrics_http import metrics_attempts
from tests.hostile.mutated_frames import FrameOutcomes, send_mutated_frames
from tests.hostile.privileges import privilege_attempts
from tests.hostile.requests import TARGET
from tests.hostile.target import BROKERS, PASSWORDS, Target

MEMORY_GROWTH_BYTES_MAX: Final = 200 * 1024 * 1024
CLIENT_WAIT_S_MAX: Final = 5.0
# The outcomes of attempts that the cluster allows, for example a login with the right password.
ALLOWED: Final = frozenset({"served", "200", "welcome"})
_NOTIFICATION: Final = re.compile(r"/config/changes/.*|/kafka-acl(-extended)?-changes/.*")
_THREADS: Final = 6


def catalogue() -> list[Attempt]:
    """Return every attempt that is not a mutated frame."""
    return [
        *metrics_attempts(),
        *login_attempts(),
        *privilege_attempts(),
        *envelope_attempts(),
        *channel_attempts(),
    ]


@dataclass
class Result:
    """The counts of the attack, and a sentence for each finding. No finding means success."""

    seed: int
    tries: Counter[str] = field(default_factory=Counter)
    controls: Counter[str] = field(default_factory=Counter)  # attempts that must succeed, and did
    mutated: FrameOutcomes = field(default_factory=FrameOutcomes)
    mutated_s: float = 0.0
    served: int = 0
    longest_wait_s: float = 0.0
    findings: list[str] = field(default_factory=list)
    grown_bytes: int = 0
    judged: str = ""

    def expect(self, holds: bool, finding: str) -> None:
        if not holds:
            self.findings.append(finding)


def _client(target: Target, user: str) -> AdminClient:
    return AdminClient(
        {
            "bootstrap.servers": target.address("SECURE"),
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": user,
            "sasl.password": PASSWORDS[user],
            "ssl.ca.location": str(target.files.authority),
            "topic.metadata.refresh.interval.ms": 1000,
            "log_level": 0,
        }
    )


@contextmanager
def _normal_client(target: Target, result: Result) -> Iterator[None]:
    """Run a released client that creates and lists topics as alice during the attack."""
    stop = threading.Event()

    def work() -> None:
        admin, number = _client(target, "alice"), 0
        while not stop.is_set():
            began, name = time.monotonic(), f"alice-{number % 20}"
            try:
                if number < 20:
                    admin.create_topics([NewTopic(name, 1, 1)])[name].result(timeout=30)
                listed = name in admin.list_topics(timeout=30).topics or number < 20
                result.expect(listed, f"alice does not see {name}")
                result.served += 1
            except Exception as error:
                result.findings.append(f"alice was not served: {error}")
            result.longest_wait_s = max(result.longest_wait_s, time.monotonic() - began)
            number += 1
            stop.wait(0.02)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _tried(target: Target, attempt: Attempt) -> str:
    """Return the outcome. An exception proves nothing, so it is a finding, too."""
    try:
        return attempt.run(target)
    except Exception as error:
        return f"the attempt raised {type(error).__name__}: {error}"


def run(target: Target, frames: int, seed: int) -> Result:
    """Attack, check, stop the cluster, and judge its evidence."""
    result = Result(seed)
    admin = _client(target, "admin")
    admin.create_topics([NewTopic(TARGET, 1, 1)])[TARGET].result(timeout=60)
    before, attempts = target.protected(), catalogue()
    with _normal_client(target, result), ThreadPoolExecutor(_THREADS) as pool:
        futures = [(planned, pool.submit(_tried, target, planned)) for planned in attempts]
        began = time.monotonic()
        result.mutated = asyncio.run(send_mutated_frames(target, frames, seed))
        result.mutated_s = time.monotonic() - began
        for attempt, future in futures:
            outcome = future.result()
            result.tries[attempt.group] += 1
            result.controls[attempt.group] += outcome in attempt.right & ALLOWED
            wanted = " or ".join(sorted(attempt.right))
            finding = f"{attempt.group}: {attempt.name}: {outcome}, not {wanted}"
            result.expect(outcome in attempt.right, finding)
    _check(target, result, before)
    return result


def forbidden_changes(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> list[str]:
    """Return the znodes that changed although no attempt may change them.

    alice may create tokens of her own, and the controller may purge old notifications.
    """
    return sorted(
        path
        for path in before.keys() | after.keys()
        if before.get(path) != after.get(path)
        and not path.startswith("/delegation_token")
        and not (path not in after and _NOTIFICATION.fullmatch(path))
    )


def _check(target: Target, result: Result, before: dict[str, bytes]) -> None:
    result.expect(result.served > 10, f"alice was served only {result.served} times")
    wait = result.longest_wait_s
    result.expect(wait < CLIENT_WAIT_S_MAX, f"alice waited {wait:.1f} s")
    mutated = result.mutated
    result.expect(
        not mutated.silent and not mutated.unsent,
        f"frames without a response on an open connection, or not sent: {mutated}",
    )
    result.expect(
        bool(mutated.decoded and mutated.rejected), "no frame was decoded, or no frame was refused"
    )
    after = target.protected()
    changed = forbidden_changes(before, after)
    result.expect(not changed, f"written without rights: {changed[:5]}")
    result.grown_bytes = max(target.memory(b) - target.memory_at_start[b] for b in BROKERS)
    grown = result.grown_bytes
    result.expect(grown < MEMORY_GROWTH_BYTES_MAX, f"memory grew by {grown / 1e6:.0f} MB")
    dead = [broker for broker in BROKERS if not target.is_alive(broker)]
    result.expect(not dead, f"brokers {dead} died or started again")
    status, result.judged = target.stop_and_judge()
    result.expect(status == 0, f"the judge exited with {status}: {result.judged}")
    for problem, evidence in (
        ("a traceback", target.tracebacks()),
        ("a torn event", target.torn_events()),
        ("a secret", target.secrets_in_logs()),
    ):
        result.expect(not evidence, f"{problem} in {evidence[:5]}")


def table(result: Result) -> str:
    """Return a table of attacks, tries and outcomes in 80 columns."""
    wrong = Counter(finding.partition(":")[0] for finding in result.findings)
    rows = []
    for group, tries in result.tries.items():
        allowed, findings = result.controls[group], wrong[group]
        outcome = f"{tries - allowed - findings} refused"
        outcome += f", {allowed} allowed" if allowed else ""
        rows.append((group, tries, outcome + (f", {findings} WRONG" if findings else "")))
    mutated = result.mutated
    for listener in mutated.rejected | mutated.decoded:
        decoded, rejected = mutated.decoded[listener], mutated.rejected[listener]
        tries = decoded + rejected + mutated.silent[listener]
        rows.append(
            (f"mutated frames, {listener}", tries, f"{decoded} decoded, {rejected} refused")
        )
    judged = (
        "PASS" if not any("the judge" in finding for finding in result.findings) else "not PASS"
    )
    rate = mutated.sent / result.mutated_s if result.mutated_s else 0.0
    lines = [
        f"{'attack':38} {'tries':>8}  outcome",
        *(f"{name:38} {tries:>8}  {outcome}" for name, tries, outcome in rows),
        f"{'together':38} {result.tries.total() + mutated.sent:>8}  {rate:.0f} frames/s",
        "`allowed`: attempts that must succeed, such as a login with the right password.",
        f"A normal client was served {result.served} times and waited at most "
        f"{result.longest_wait_s:.2f} s.",
        f"Memory grew by at most {result.grown_bytes / 1e6:.0f} MB. The verdict is {judged}. "
        f"Seed {result.seed}.",
        *(f"FINDING {finding}" for finding in result.findings),
        f"{len(result.findings)} findings",
    ]
    return "\n".join(lines)
