"""KIP-201: topic management policy."""

from __future__ import annotations

from tests.kips.mutant import Mutant

POLICIES = "node/assembly/policies.py"
CHECK = "controller/apis/policy_check.py"
POLICY_STATE = "cluster_model/policy_state.py"
EVALUATION = "controller/loop/policy_evaluation.py"
CREATE_TOPICS = "controller/apis/create_topics.py"
DELETE_TOPICS = "controller/apis/delete_topics.py"
DELETE_RECORDS = "broker_proxy/apis/records/delete_records.py"
RECORDS_POLICY = "broker_proxy/apis/records/records_policy.py"
DRAFTED = "bridgehead/kafka_wire/messages/drafted"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        ("201.1", "201.2"),
        POLICIES,
        'MANAGEMENT: Final = "topic.management.policy.class.name"',
        'MANAGEMENT: Final = "topics.management.policy.class.name"',
    ),
    Mutant(
        ("201.3",),
        POLICIES,
        "        policy = found()\n",
        "        policy = found.__new__(found)\n",
    ),
    Mutant(
        ("201.4",),
        POLICIES,
        "policy.configure(MappingProxyType(dict(properties)))",
        "policy.configure(dict(properties))",
    ),
    Mutant(
        ("201.5",),
        POLICIES,
        "await self._runner.close(self._policy.close)",
        "await self._runner.close(lambda: None)",
    ),
    Mutant(
        ("201.6",),
        POLICY_STATE,
        "num_partitions=len(assignment),",
        "num_partitions=1,",
    ),
    Mutant(
        ("201.7",),
        POLICY_STATE,
        "replication_factor=len(assignment[0]) if assignment else 0,",
        "replication_factor=max(map(len, assignment), default=0),",
    ),
    # The same fault in the requested state.
    Mutant(
        ("201.7",),
        CHECK,
        "replication_factor=len(assignment[0]) if assignment else 0,",
        "replication_factor=max(map(len, assignment), default=0),",
    ),
    Mutant(
        ("201.8",),
        POLICY_STATE,
        "replicas_assignments=dict(enumerate(assignment)),",
        "replicas_assignments={},",
    ),
    Mutant(
        ("201.9",),
        POLICY_STATE,
        "configs=dict(configs),",
        "configs={},",
    ),
    Mutant(
        ("201.10",),
        CHECK,
        "marked=topic_name in self._image.deletions",
        "marked=False",
    ),
    Mutant(
        ("201.11",),
        POLICY_STATE,
        "internal=topic.name in INTERNAL_TOPICS,",
        "internal=False,",
    ),
    Mutant(
        ("201.12",),
        POLICY_STATE,
        "[PartitionAssignment.of(topic, p).target for p in range(len(topic.assignment))]",
        "list(topic.assignment)",
    ),
    Mutant(
        ("201.12",),
        RECORDS_POLICY,
        "topic_state(topic, configs,",
        "topic_state(Topic(topic.name, b'', topic.assignment, ()), configs,",
    ),
    Mutant(
        ("201.14",),
        EVALUATION,
        "cluster = ImageClusterState(self.image)\n",
        "cluster = ImageClusterState(MetadataImage())\n",
    ),
    Mutant(
        ("201.13",),
        "controller/apis/create_partitions.py",
        "generated = topic.assignments is None",
        "generated = True",
    ),
    Mutant(
        ("201.15",),
        CHECK,
        "        if topic is None:\n            return None\n        configs",
        "        if topic is None:\n            return TopicState(0, 0)\n        configs",
    ),
    Mutant(
        ("201.16",),
        CHECK,
        "            left_out |= self._image.deletions\n",
        "            pass\n",
    ),
    Mutant(
        ("201.16",),
        CHECK,
        "frozenset[str]() if include_internal else INTERNAL_TOPICS",
        "INTERNAL_TOPICS if include_internal else frozenset[str]()",
    ),
    Mutant(
        ("201.17",),
        CHECK,
        "return len(self._image.brokers)",
        "return max(1, len(self._image.brokers))",
    ),
    Mutant(
        ("201.18",),
        CHECK,
        "    return CreateTopicRequest(\n        name,\n",
        "    return CreateTopicRequest(\n        name.upper(),\n",
    ),
    Mutant(
        ("201.19",),
        POLICY_STATE,
        "    if principal == ANONYMOUS:\n        return None\n",
        "",
    ),
    Mutant(
        ("201.19",),
        RECORDS_POLICY,
        "client = policy_principal(principal)",
        'client = policy_principal(principal) or "User:ANONYMOUS"',
    ),
    Mutant(
        ("201.20",),
        CREATE_TOPICS,
        "            check = self._policy_check(context, request, name, plan)\n",
        "            check = None\n",
    ),
    Mutant(
        ("201.21",),
        "controller/apis/create_partitions.py",
        "grown = image.topics[name].assignment + added",
        "grown = image.topics[name].assignment",
    ),
    Mutant(
        ("201.21",),
        CHECK,
        "    state = _requested(name, assignment, configs, True, name in image.deletions)\n",
        "    configs = image.config('topics', name)\n"
        "    state = _requested(name, assignment, configs, True, name in image.deletions)\n",
    ),
    Mutant(
        ("201.22", "201.32"),
        DELETE_TOPICS,
        "            if outcome.succeeded and resolved in image.topics:\n",
        "            if False:\n",
    ),
    Mutant(
        ("201.23", "201.33"),
        DELETE_RECORDS,
        "            return None\n"
        "        refusal = await self.policy.refusal(request.client.principal, name, requested)\n",
        "            return None\n        refusal = None\n",
    ),
    Mutant(
        ("201.24",),
        DELETE_RECORDS,
        "            if error is ErrorCode.NONE\n        }\n",
        "        }\n",
    ),
    Mutant(
        ("201.24",),
        DELETE_RECORDS,
        "p: self.logs.high_watermark(name, p) if offsets[p] == _HIGH_WATERMARK else offsets[p]",
        "p: offsets[p]",
    ),
    Mutant(
        ("201.25",),
        "node/assembly/policy_runner.py",
        "return ApiError(ErrorCode.POLICY_VIOLATION, str(raised) or None)",
        "return ApiError(ErrorCode.POLICY_VIOLATION, None)",
    ),
    Mutant(
        ("201.26",),
        EVALUATION,
        "            elements.append(decided)\n        if not unevaluated:",
        "            elements.append(decided)\n"
        "        if any(each.outcome.error == ErrorCode.POLICY_VIOLATION for each in elements):\n"
        "            failed = Outcome(ErrorCode.POLICY_VIOLATION)\n"
        "            elements = [Decided(each.element, failed) for each in elements]\n"
        "        if not unevaluated:",
    ),
    Mutant(
        ("201.27",),
        POLICIES,
        "return partial(policy.validate_create_topic, check, cluster)",
        "return lambda: None",
    ),
    Mutant(
        ("201.28",),
        "controller/apis/config_changes.py",
        "    if resource.resource_type == TOPIC:\n        return partial(\n",
        "    if resource.resource_type == TOPIC and len(record.configs) > 1:\n"
        "        return partial(\n",
    ),
    Mutant(
        ("201.28",),
        "controller/apis/config_changes.py",
        "decided.append(Decided(element, DONE, (record,), policy_check=check))",
        "decided.append(Decided(element, DONE, (record,)))",
    ),
    Mutant(
        ("201.29",),
        "controller/apis/create_partitions.py",
        "                policy_check=partial(\n"
        "                    alteration, context.client.principal, name, image, grown, generated\n"
        "                ),\n",
        "",
    ),
    Mutant(
        ("201.30",),
        "controller/apis/alter_partition_reassignments.py",
        "yield Decided(element, DONE, head + ((state,) if state else ()), policy_check=check)",
        "yield Decided(element, DONE, head + ((state,) if state else ()))",
    ),
    Mutant(
        ("201.31",),
        "controller/apis/alter_topics.py",
        "after = dict(enumerate(targets(topic))) | dict(new)",
        "after = dict(enumerate(targets(topic)))",
    ),
    Mutant(
        ("201.34",),
        POLICIES,
        "        if self._alter is not None:\n            self._alter.validate(AlterConfigPolicy",
        "        if self._alter is None:\n            self._alter.validate(AlterConfigPolicy",
    ),
    Mutant(
        ("201.34", "201.38"),
        POLICIES,
        "        if self._create is None:\n            return\n",
        "        return\n",
    ),
    Mutant(
        ("201.35",),
        POLICIES,
        '                _log.warning("%s is deprecated',
        '                _log.info("%s is deprecated',
    ),
    Mutant(
        ("201.36",),
        POLICIES,
        "    for older in (CREATE, ALTER):\n",
        "    for older in (ALTER,):\n",
    ),
    Mutant(
        ("201.37",),
        POLICIES,
        "    for older in (CREATE, ALTER):\n",
        "    for older in (CREATE,):\n",
    ),
    Mutant(
        ("201.39",),
        POLICIES,
        "                if not isinstance(policy, DeprecatedPolicies):\n",
        "                if False:\n",
    ),
    Mutant(
        ("201.40",),
        f"{DRAFTED}/delete_topics.py",
        'validate_only: bool = wire(BOOL, versions="2-3")',
        'validate_only: bool = wire(BOOL, versions="3")',
    ),
    Mutant(
        ("201.40",),
        f"{DRAFTED}/delete_topics.py",
        'wire(BOOL, versions="4+", tag=0, json="validateOnly")',
        'wire(BOOL, versions="5+", tag=0, json="validateOnly")',
    ),
    Mutant(
        ("201.41",),
        DELETE_TOPICS,
        "records = () if dry else (DeletionMarkerRecord(resolved),)",
        "records = (DeletionMarkerRecord(resolved),)",
    ),
    Mutant(
        ("201.41",),
        DELETE_TOPICS,
        "            if outcome.succeeded and resolved in image.topics:\n",
        "            if outcome.succeeded and resolved in image.topics and not dry:\n",
    ),
    Mutant(
        ("201.42",),
        f"{DRAFTED}/delete_topics.py",
        'wire(STRING, versions="2-3,5+", nullable="2-3,5+", default=None)',
        'wire(STRING, versions="3,5+", nullable="3,5+", default=None)',
    ),
    Mutant(
        ("201.43",),
        f"{DRAFTED}/delete_records.py",
        'validate_only: bool = wire(BOOL, versions="1")',
        'validate_only: bool = wire(BOOL, versions="2")',
    ),
    Mutant(
        ("201.45",),
        f"{DRAFTED}/delete_records.py",
        'wire(STRING, versions="1", nullable="1", default=None)',
        'wire(STRING, versions="2", nullable="2", default=None)',
    ),
    Mutant(
        ("201.48",),
        EVALUATION,
        "            _log.info(\n",
        "            _log.debug(\n",
    ),
    Mutant(
        ("201.49",),
        DELETE_RECORDS,
        "            _log.info(\n",
        "            _log.debug(\n",
    ),
    Mutant(
        ("201.49",),
        DELETE_RECORDS,
        "            return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)\n",
        "            return refusal\n",
    ),
    Mutant(
        ("201.48",),
        DELETE_TOPICS,
        "context.is_drafted and context.api_version >= _KIP_201_FROM",
        "context.is_drafted and context.api_version == _KIP_201_FROM",
    ),
    Mutant(
        ("201.50",),
        DELETE_TOPICS,
        "_POLICY_VIOLATION_FROM: Final = 5",
        "_POLICY_VIOLATION_FROM: Final = 4",
    ),
    Mutant(
        ("201.53",),
        POLICIES,
        "                configs=state.configs,\n",
        "",
    ),
    Mutant(
        ("201.44",),
        DELETE_RECORDS,
        "            refusal = await self._refusal(",
        "            dry = getattr(message, 'validate_only', False)\n"
        "            refusal = None if dry else await self._refusal(",
    ),
)
