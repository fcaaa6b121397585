"""Replays a recording of a real Kafka against a cluster and compares the responses.

A recording has one case per line. A case is a list of steps. A step has a receiver (`controller`,
`other`, `broker:N`), a request, and Kafka's response or the fact that there was none. Steps of APIs
that the cluster does not advertise are skipped and counted. Each difference must match a row of
`KNOWN_DIFFERENCES`. A step may also have these fields:

    client         steps with the same client share a connection
    fresh          the step opens a new connection
    later          the step does not wait for the response
    receive        the step sends nothing, and waits for the response to the earlier request
    until          the step is repeated until its response has this error code
    settle_before  the step is repeated for up to this many seconds, until the responses are equal
    wait_after     after the step, wait until all brokers have the same topics
    capture        names of values in the response, which later steps contain as `$name`
    unordered      paths of lists that are compared in any order

Broker 1 must be the controller, and the cluster must be empty. Steps with a user go to the SASL
listener after a PLAIN login with the password `USER-secret`. Steps of the user `!raw` go there
without a login.

    python -m tests.fidelity.replay --recording FILE --cluster CLUSTER_JSON [--to other] [--verbose]
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.apis import API_SPECS
from bridgehead.kafka_wire.headers import (
    decode_request_header,
)
from bridgehead.kafka_wire.json_form import decode_body
from bridgehead.raw_client.blocking import CLOSED, TIMEOUT, Connection
from bridgehead.raw_client.codec import decode_json, encode_json
from tests.fidelity.canonical_records import canonical_records
from tests.fidelity.known_differences import KNOWN_DIFFERENCES

NO_ID: Final = "A" * 22
_SHOWN: Final = 700  # characters of a request or a response
# Fields whose values differ between clusters. Only whether they have a value is compared.
FREE: Final = frozenset(
    {
        "throttleTimeMs",
        "host",
        "port",
        "clusterId",
        "controllerId",
        "topicId",
        "tokenId",
        "hmac",
        "issueTimestampMs",
        "issueTimestamp",
        "expiryTimestampMs",
        "expiryTimestamp",
        "maxTimestampMs",
        "maxTimestamp",
        "leaderId",
        "leaderEpoch",
        "isrNodes",
        "replicaNodes",
        "sessionLifetimeMs",
        "finalizedFeaturesEpoch",
        "documentation",
        "logAppendTimeMs",
        "sessionId",
    }
)
_KEYS: Final = {spec.enum_name: spec.key for spec in API_SPECS.values()}
RAW_USER: Final = "!raw"
NO_RESPONSE: Final = "no response yet"
_UUID_LENGTH: Final = 37  # with the hyphen before it; member ids end with a UUID
_POLL_S: Final = 0.02
_UNTIL_S: Final = 10.0
_RANGE: Final = re.compile(r"\[-?\d+, -?\d+\]")  # of timestamps, relative to the broker's time

Step = Mapping[str, Any]


@dataclass(slots=True)
class Report:
    """The result of a replay. `differences`: texts of the unexplained differences."""

    equal: int = 0
    known_differences: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    sent: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    def summary(self) -> str:
        """Return a few lines of text."""
        sent, known_count = self.sent.total(), self.known_differences.total()
        lines = [f"{self.equal} of {sent} responses are equal"]
        lines.append(f"{known_count} known differences: {known_count / max(sent, 1):.1%}")
        lines += [f"  {count} {name}" for name, count in self.known_differences.items()]
        lines += [f"{count} skipped: {api} is not served" for api, count in self.skipped.items()]
        lines.append(f"{len(self.differences)} unknown differences")
        return "\n".join(lines)


class Replay:
    """One recording against one cluster.

    Args:
        brokers: `host:port` by broker id.
        sasl: `host:port` of the SASL listeners by broker id, for steps that have a user.
        to: `other` sends the controller's steps to another broker.
    """

    def __init__(
        self,
        brokers: Mapping[int, str],
        to: str | None = None,
        sasl: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        self._brokers = brokers
        self._sasl = sasl
        self._to = to
        # User and client of the current step.
        self._user: str | None = None
        self._client: str | None = None
        self._open: dict[tuple[int, str | None, str | None], Connection] = {}
        self._names: dict[str, Any] = {}
        self._kafkas_names: dict[str, Any] = {}
        self.report = Report()
        self.served = {
            api_key["apiKey"]
            for api_key in self._send(1, ApiKey.API_VERSIONS, 0, {}).get("apiKeys", [])
        }
        if self._controller() != 1:
            raise ValueError(
                "Broker 1 must be the controller: otherwise the responses are not comparable."
            )

    def run(self, case: Mapping[str, Any]) -> None:
        """Send every step of a case and compare the responses."""
        for step in case["steps"]:
            api = step.get("api", "raw")
            if api != "raw" and _KEYS[api] not in self.served:
                self.report.skipped[api] += 1
                continue
            self.report.sent[api] += 1
            self._compare(case["case"], step)

    def wait_until_agreed(self, within_s: float = 10.0) -> None:
        """Wait until all brokers have the same topics, for `within_s` seconds at most."""
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            topics = [self._topics_at(broker) for broker in self._brokers]
            if all(topic == topics[0] for topic in topics):
                return
            time.sleep(_POLL_S)

    def _topics_at(self, broker: int) -> Any:
        self._user = self._client = None
        response = self._send(broker, ApiKey.METADATA, 1, {"topics": None})
        return sorted(
            (topic["name"], sorted(json.dumps(partition) for partition in topic["partitions"]))
            for topic in response["topics"]
        )

    def close(self) -> None:
        """Close every connection."""
        for connection in self._open.values():
            connection.close()

    def _compare(self, case: str, step: Step) -> None:
        want, got = self._both(step)
        if got == want:
            self.report.equal += 1
            return
        for row in KNOWN_DIFFERENCES:
            if row.api == step.get("api", "raw") and row.explains(step, want, got):
                self.report.known_differences[row.name] += 1
                return
        request = json.dumps(step.get("body", step.get("raw")))[:_SHOWN]
        theirs, ours = _around_difference(json.dumps(want), json.dumps(got))
        self.report.differences.append(
            f"{case}: {step.get('api', 'raw')} v{step.get('version')} to {step['to']} {request}\n"
            f"    Kafka {theirs}\n    here  {ours}"
        )

    def _both(self, step: Step) -> tuple[Any, Any]:
        """Return Kafka's response and ours in comparable form."""
        wanted = self._wanted(step)
        _capture(step, wanted, self._kafkas_names)
        want = comparable(step, _with_names(wanted, self._kafkas_names))
        # The recording waited for propagation here; poll until our broker has the change.
        deadline = time.monotonic() + step.get("settle_before", 0)
        while True:
            response = self.take(step)
            got = comparable(step, _with_names(response, self._names))
            if got == want or time.monotonic() >= deadline:
                return want, got
            time.sleep(_POLL_S)

    def _wanted(self, step: Step) -> Any:
        """Return Kafka's response."""
        return recorded_response(step)

    def take(self, step: Step) -> Any:
        """Send one step and capture the values for later steps; see `_take`."""
        response = self._take(step)
        deadline = time.monotonic() + _UNTIL_S
        while "until" in step and response["errorCode"] != step["until"]:
            assert time.monotonic() < deadline, f"no error code {step['until']}: {response}"
            time.sleep(_POLL_S)
            response = self._take(step)
        _capture(step, response, self._names)
        if step.get("wait_after"):
            self.wait_until_agreed()
        return response

    def _take(self, step: Step) -> Any:
        """Send one step; return the decoded body, a raw response in hex, CLOSED or TIMEOUT."""
        broker = self._receiver(step["to"])
        self._user, self._client = step.get("user"), step.get("client")
        if step.get("fresh"):
            self._close(broker)
        if "raw" in step:
            response = self._exchange(broker, bytes.fromhex(step["raw"]))
            return response.hex() if isinstance(response, bytes) else response
        key, version = _KEYS[step["api"]], step["version"]
        if step.get("receive"):
            return self._decoded(key, version, self._receive(broker))
        names = {**self._names, "receiver": str(broker), "another": str(broker % 3 + 1)}
        body = step["body"]
        if "request_hex" in step:
            data = bytes.fromhex(step["request_hex"])
            header, at = decode_request_header(data)
            version = header.api_version
            body = decode_body(key, "request", version, data[at:])
        sent = fill(body, step["body"], names)
        if step.get("later"):
            self._connection(broker).send(encode_json(key, version, sent))
            return NO_RESPONSE
        tags = step.get("unknown_tags", False)
        return self._send(broker, key, version, sent, unknown_tags=tags)

    def _receiver(self, to: str) -> int:
        if to.startswith("broker:"):
            return int(to.removeprefix("broker:"))
        return 1 if (self._to or to) == "controller" else 2

    def _controller(self) -> int:
        response = self._send(1, ApiKey.METADATA, 1, {"topics": []})
        return int(response["controllerId"])

    def _send(
        self,
        broker: int,
        key: int,
        version: int,
        body: dict[str, Any],
        *,
        unknown_tags: bool = False,
    ) -> Any:
        response = self._exchange(
            broker, encode_json(key, version, body, unknown_tags=unknown_tags)
        )
        return self._decoded(key, version, response)

    def _decoded(self, key: int, version: int, response: bytes | str) -> Any:
        return response if isinstance(response, str) else decode_json(key, version, response)

    def _exchange(self, broker: int, payload: bytes) -> bytes | str:
        return self._receive(broker) if self._connection(broker).send(payload) else CLOSED

    def _receive(self, broker: int) -> bytes | str:
        """Return the current connection's next response; if none comes, close the connection."""
        response = self._connection(broker).receive()
        if isinstance(response, str):
            self._close(broker)
        return response

    def _connection(self, broker: int) -> Connection:
        """Return the connection of the current user and client."""
        key = broker, self._user, self._client
        if key not in self._open:
            self._open[key] = self._connect(broker, self._user)
        return self._open[key]

    def _connect(self, broker: int, user: str | None) -> Connection:
        if user is None:
            return Connection(self._brokers[broker])
        if broker not in self._sasl:
            raise ValueError(f"Broker {broker} has no SASL_PLAINTEXT listener for {user}.")
        connection = Connection(self._sasl[broker])
        if user != RAW_USER and not connection.log_in(user, f"{user}-secret"):
            raise ValueError(f"{user} could not log in at broker {broker}.")
        return connection

    def _close(self, broker: int) -> None:
        connection = self._open.pop((broker, self._user, self._client), None)
        if connection is not None:
            connection.close()


def _capture(step: Step, response: Any, names: dict[str, Any]) -> None:
    for name, path in step.get("capture", {}).items():
        value = dig(response, path)
        if value is not None:
            names[name] = value


def _with_names(response: Any, names: Mapping[str, Any]) -> Any:
    """Return a response with captured member ids replaced by their names in the recording."""
    name_of_value = {value: f"${name}" for name, value in names.items() if _is_member_id(value)}
    return _replaced(response, name_of_value) if name_of_value else response


def _is_member_id(value: Any) -> bool:
    return isinstance(value, str) and len(value) >= _UUID_LENGTH and value[-_UUID_LENGTH] == "-"


def _replaced(value: Any, name_of_value: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _replaced(inner, name_of_value) for key, inner in value.items()}
    if isinstance(value, list):
        return [_replaced(item, name_of_value) for item in value]
    return name_of_value.get(value, value) if isinstance(value, str) else value


def fill(sent: Any, template: Any, names: Mapping[str, str]) -> Any:
    """Return `sent`, in which values of this cluster replace the `$name` values of the case."""
    if isinstance(template, str) and template.startswith("$"):
        return names.get(template[1:], NO_ID)
    if isinstance(sent, dict) and isinstance(template, dict):
        return {key: fill(value, template.get(key), names) for key, value in sent.items()}
    if isinstance(sent, list) and isinstance(template, list):
        return [fill(*pair, names) for pair in zip(sent, template, strict=True)]
    return sent


def dig(value: Any, path: str) -> Any:
    """Return the value at a path such as `topics.0.topicId`; None if there is none."""
    for part in path.split("."):
        try:
            value = value[int(part)] if isinstance(value, list) else value[part]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def recorded_response(step: Step) -> Any:
    """Return Kafka's recorded response in the form of `Replay.take`."""
    if step.get("closed"):
        return CLOSED
    if step.get("timeout"):
        return TIMEOUT
    if step.get("later"):
        return NO_RESPONSE
    return step["response_hex"] if "raw" in step else step["response"]


def comparable(step: Step, response: Any) -> Any:
    """Return a response without the values that differ between clusters."""
    if isinstance(response, str):
        # Raw ApiVersions responses are not compared: their list of APIs depends on what is served.
        responded = response not in (CLOSED, TIMEOUT) and step.get("raw", "").startswith("0012")
        return "answered" if responded else response
    if step.get("api") == "API_VERSIONS":
        return {"errorCode": response["errorCode"], "listed": bool(response["apiKeys"])}
    return _comparable(step, response, "")


def _comparable(step: Step, value: Any, path: str) -> Any:
    if isinstance(value, dict):
        return {
            key: "*"
            if _is_free(value, key)
            else canonical_records(inner)
            if key == "records" and inner
            else _RANGE.sub("[*]", inner)
            if key == "batchIndexErrorMessage" and inner
            else _comparable(step, inner, f"{path}.{key}" if path else key)
            for key, inner in sorted(value.items())
        }
    if isinstance(value, list):
        if path == "topics" and step.get("only_prefix"):
            value = [v for v in value if (v.get("name") or "").startswith(step["only_prefix"])]
        items = [_comparable(step, item, f"{path}.*") for item in value]
        if path in step.get("unordered", []):
            items.sort(key=lambda item: json.dumps(item, sort_keys=True))
        return items
    return value


def _is_free(holder: Mapping[str, Any], key: str) -> bool:
    value = holder[key]
    if key == "value":
        return holder.get("name") == "zookeeper.connect"
    if key == "errorMessage":
        return holder.get("errorCode") == 31  # Kafka's text is a dump of its request object
    if key == "producerId":
        return bool(value >= 0)
    return key in FREE and value not in (None, "", [], 0, -1, NO_ID)


def load_cases(recording: Path) -> Iterator[dict[str, Any]]:
    """Yield the cases of a recording, in their order."""
    opener: Callable[..., Any] = gzip.open if recording.suffix == ".gz" else open
    with opener(recording, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def replay(
    recording: Path,
    brokers: Mapping[int, str],
    *,
    to: str | None = None,
    only: str = "",
    sasl: Mapping[int, str] = MappingProxyType({}),
) -> Report:
    """Replay a recording, or its cases whose names begin with `only`.

    Raises:
        ValueError: broker 1 is not the controller, or a user of the recording cannot log in.
        OSError: the recording or a broker is missing.
    """
    run = Replay(brokers, to, sasl)
    try:
        for case in load_cases(recording):
            if case["case"].startswith(only):
                run.run(case)
    finally:
        run.close()
    return run.report


def _around_difference(theirs: str, ours: str) -> tuple[str, str]:
    """Return the part of each text to show: the text around the first difference."""
    pairs = enumerate(zip(theirs, ours, strict=False))
    at = next((i for i, (a, b) in pairs if a != b), min(len(theirs), len(ours)))
    begin = max(0, at - _SHOWN // 2) if max(len(theirs), len(ours)) > _SHOWN else 0
    before = "…" if begin else ""
    shown = slice(begin, begin + _SHOWN)
    return before + theirs[shown], before + ours[shown]


def main() -> None:
    """Run the command; exit 1 if there are unknown differences."""
    parser = argparse.ArgumentParser(prog="python -m tests.fidelity.replay", description=__doc__)
    parser.add_argument("--recording", type=Path, required=True)
    parser.add_argument("--cluster", type=Path, required=True, help="a cluster.json")
    parser.add_argument("--case", default="", help="only cases with this prefix")
    parser.add_argument("--to", choices=("controller", "other"))
    parser.add_argument("--verbose", action="store_true", help="show the unknown differences")
    options = parser.parse_args()
    document = json.loads(options.cluster.read_text(encoding="utf-8"))
    brokers = {
        broker["id"]: next(iter(broker["listeners"].values())) for broker in document["brokers"]
    }
    sasl = {
        broker["id"]: broker["listeners"]["SASL_PLAINTEXT"]
        for broker in document["brokers"]
        if "SASL_PLAINTEXT" in broker["listeners"]
    }
    report = replay(options.recording, brokers, to=options.to, only=options.case, sasl=sasl)
    if options.verbose:
        sys.stdout.writelines(f"{text}\n" for text in report.differences)
    sys.stdout.write(report.summary() + "\n")
    sys.exit(bool(report.differences))


if __name__ == "__main__":
    main()
