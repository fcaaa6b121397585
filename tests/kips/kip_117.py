"""Mutants for the rows of KIP-117 in docs/kips.md, and for other KIPs' rows about AdminClient."""

from __future__ import annotations

from tests.kips.mutant import Mutant

ADMIN = "bridgehead/admin"
CONFIG = f"{ADMIN}/config.py"
CORE = f"{ADMIN}/core.py"
REQUESTS = f"{ADMIN}/requests.py"
TOPICS = f"{ADMIN}/calls/topics.py"
CLUSTER = f"{ADMIN}/calls/cluster.py"
GROUPS = f"{ADMIN}/calls/groups.py"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(("590.18",), CORE, "DRAFTED_SPECS[request.key].route is Route.FORWARD", "False"),
    Mutant(
        ("201.51",),
        REQUESTS,
        'self.error(element.error_code, getattr(element, "error_message", None))',
        "self.error(element.error_code, None)",
    ),
    Mutant(
        ("4.86",),
        f"{ADMIN}/calls/configs.py",
        "    return results | (yield from describe_config(entity_type, left))\n",
        "    return results | {name: Try.new_value({}) for name in left}\n",
    ),
    Mutant(("117.1",), f"{ADMIN}/links.py", "[Disconnect(number) for number in self._links]", "[]"),
    Mutant(("117.2",), CONFIG, '    "metadata.max.age.ms": (300_000, 0),\n', ""),
    Mutant(("117.2", "117.25"), CONFIG, '{"try.backoff.ms": "retry.backoff.ms"}', "{}"),
    Mutant(
        ("117.3",),
        f"{ADMIN}/shared_loop.py",
        "runs = may_run and self._runner is None",
        "runs = may_run",
    ),
    Mutant(
        ("117.4",),
        CONFIG,
        "import logging\n",
        "import logging\n\nimport kazoo\n",
    ),
    Mutant(
        ("117.5", "117.26"),
        f"{ADMIN}/__init__.py",
        '    "read_client_properties",\n]\n',
        '    "read_client_properties",\n    "CreateTopicsRequest",\n]\n'
        "from bridgehead.kafka_wire.messages.create_topics import CreateTopicsRequest\n",
    ),
    Mutant(
        ("117.6",),
        REQUESTS,
        "return Try.new_error(error) if error is not None else Try.new_value(read(element))\n",
        "if error is not None:\n            raise error\n"
        "        return Try.new_value(read(element))\n",
    ),
    Mutant(
        ("117.7", "117.17"),
        CLUSTER,
        "            results[node] = Try.new_error(error)\n",
        "            raise error\n",
    ),
    Mutant(
        ("117.8",),
        REQUESTS,
        "    if error is not None:\n        raise error\n\n\ndef closed",
        "    if error is not None:\n        return\n\n\ndef closed",
    ),
    Mutant(("117.8",), CORE, "DRAFTED_SPECS[request.key].route is Route.FORWARD", "False"),
    Mutant(
        ("117.9", "117.12"),
        TOPICS,
        "ErrorCode.REQUEST_TIMED_OUT and not blocking:",
        "ErrorCode.REQUEST_TIMED_OUT and blocking:",
    ),
    Mutant(
        ("117.10",),
        TOPICS,
        "return CreateTopicsRequest(wanted, timeout_ms, dry)",
        "return CreateTopicsRequest(wanted, timeout_ms, False)",
    ),
    Mutant(
        ("117.11",),
        TOPICS,
        "CreatableReplicaAssignment(partition, list(brokers))",
        "CreatableReplicaAssignment(partition, list(brokers)[:1])",
    ),
    Mutant(
        ("117.13",),
        f"{ADMIN}/results.py",
        "            raise self.error\n",
        "            raise AdminError(str(self.error))\n",
    ),
    Mutant(
        ("117.14",),
        TOPICS,
        "        if wanted or topic.is_failure or not topic.get().internal\n",
        "        if wanted or topic.is_failure or topic.get().internal\n",
    ),
    Mutant(
        ("117.15",),
        TOPICS,
        "answer.result(each, info)",
        "Try.new_value(info(each))",
    ),
    Mutant(("117.16",), CLUSTER, "min(spec.max_version, each.max_version)", "each.max_version"),
    Mutant(
        ("117.17",),
        GROUPS,
        "Request(key, build, broker, min_version, resent=resent)",
        "Request(key, build, None, min_version, resent=resent)",
    ),
    Mutant(
        ("117.18",),
        f"{ADMIN}/connection.py",
        "        version = min(most, served[1])\n",
        "        version = most\n",
    ),
    Mutant(
        ("117.19",),
        REQUESTS,
        "isinstance(error, KafkaTimeoutError) and error.sent",
        "isinstance(error, KafkaTimeoutError) and not error.sent",
    ),
    Mutant(
        ("117.20",),
        TOPICS,
        "    only((yield from delete_topics([name], flags)))\n",
        "    only((yield from delete_topics([], flags)))\n",
    ),
    Mutant(
        ("117.22",),
        f"{ADMIN}/calls/acls.py",
        "AclCreation(*each) for each in left",
        "AclCreation(*each) for each in list(left)[:1]",
    ),
    Mutant(
        ("117.22",),
        f"{ADMIN}/calls/drafted.py",
        "                    -1 if each.partitions is None else each.partitions,\n",
        "                    -1,\n",
    ),
    Mutant(
        ("117.23",),
        REQUESTS,
        "        return DONE if error is None else Try.new_error(error)\n",
        "        return Try.new_error(KafkaError(error_code(element.error_code)))\n",
    ),
    Mutant(
        ("117.24",),
        CORE,
        '        if exchange.attempts > self._numbers["retries"]:\n',
        "        if False:\n",
    ),
    Mutant(
        ("117.24",),
        CORE,
        "        for exchange, error in list(self._links.tick(now_ms)):\n",
        "        for exchange, error in []:\n",
    ),
    Mutant(
        ("117.24",),
        CORE,
        'exchange.not_before_ms = self._now_ms + self._numbers["retry.backoff.ms"]',
        "exchange.not_before_ms = self._now_ms",
    ),
)
