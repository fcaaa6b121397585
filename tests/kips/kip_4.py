"""KIP-4: admin wire protocol."""

from __future__ import annotations

from tests.kips.mutant import Mutant

ROUTING = "broker_proxy/requests/routing.py"
CREATE_TOPICS = "controller/apis/create_topics.py"
DELETE_TOPICS = "controller/apis/delete_topics.py"
ALTER_TOPICS = "controller/apis/alter_topics.py"
ALTER_ACLS = "controller/apis/alter_acls.py"
LIST_ACLS = "broker_proxy/apis/admin/list_acls.py"
METADATA = "broker_proxy/apis/admin/metadata.py"
IMAGE_WAITS = "controller/loop/image_waits.py"
RESPONSES = "controller/loop/delayed_responses.py"
MESSAGES = "bridgehead/kafka_wire/messages"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        ("4.1", "4.9", "4.10"),
        CREATE_TOPICS,
        "                elements.append(Decided(name, Outcome.of(error)))\n"
        "                continue\n",
        "                elements.append(Decided(name, Outcome.of(error)))\n"
        "                break\n",
    ),
    Mutant(
        ("4.3",),
        CREATE_TOPICS,
        "raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f\"Topic '{name}' already exists.\")",
        "raise ApiError(ErrorCode.INVALID_REQUEST, f\"Topic '{name}' already exists.\")",
    ),
    Mutant(
        ("4.4", "4.39"),
        DELETE_TOPICS,
        "        if topic is None and context.is_drafted:\n",
        "        if False:\n",
    ),
    Mutant(
        ("4.5",),
        CREATE_TOPICS,
        "        if partitions <= 0:\n"
        "            raise ApiError(\n"
        "                ErrorCode.INVALID_PARTITIONS,",
        "        if partitions <= 0:\n            raise ApiError(\n                ErrorCode.NONE,",
    ),
    Mutant(
        ("4.6",),
        CREATE_TOPICS,
        'ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0."',
        'ErrorCode.INVALID_PARTITIONS, "Replication factor must be larger than 0."',
    ),
    Mutant(
        ("4.7",),
        "broker_proxy/requests/dispatch.py",
        "return self._error(request, message, ErrorCode.NOT_CONTROLLER, None)",
        "return self._error(request, message, ErrorCode.INVALID_REQUEST, None)",
    ),
    Mutant(
        ("4.8",),
        CREATE_TOPICS,
        "_FOUND_TWICE: Final = Outcome(ErrorCode.INVALID_REQUEST,",
        "_FOUND_TWICE: Final = Outcome(ErrorCode.INVALID_TOPIC_EXCEPTION,",
    ),
    Mutant(
        ("4.9",),
        "controller/apis/topic_assignments.py",
        "return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)",
        "return ApiError(ErrorCode.INVALID_REQUEST, text)",
    ),
    Mutant(
        ("4.10",),
        "controller/apis/topic_config_rules.py",
        "raise ApiError(ErrorCode.INVALID_CONFIG, error.message)",
        "raise ApiError(ErrorCode.INVALID_REQUEST, error.message)",
    ),
    Mutant(
        ("4.12",),
        ALTER_TOPICS,
        "    if topic.adding or topic.removing:\n",
        "    if False:\n",
    ),
    Mutant(
        ("4.13",),
        METADATA,
        "if message.topics is None or (version == 0 and not message.topics):",
        "if not message.topics:",
    ),
    Mutant(
        ("4.13",),
        METADATA,
        "if message.topics is None or (version == 0 and not message.topics):",
        "if message.topics is None:",
    ),
    Mutant(("4.14",), METADATA, "rack=broker.rack", "rack=None"),
    Mutant(
        ("4.15",),
        METADATA,
        "controller_id=self._view.controller_id(listener),",
        "controller_id=-1,",
    ),
    Mutant(
        ("4.16",),
        METADATA,
        "is_internal=topic.name in INTERNAL_TOPICS,",
        "is_internal=False,",
    ),
    Mutant(
        ("4.17",),
        METADATA,
        "replicas = [broker for broker in replicas if broker in brokers]",
        "replicas = list(replicas)",
    ),
    Mutant(("4.18",), METADATA, "        if version == 0:\n", "        if version <= 1:\n"),
    Mutant(
        ("4.19",),
        f"{MESSAGES}/create_topics.py",
        "    num_partitions: int = wire(INT32)\n    replication_factor: int = wire(INT16)\n",
        "    replication_factor: int = wire(INT16)\n    num_partitions: int = wire(INT32)\n",
    ),
    Mutant(
        ("4.20", "4.37", "4.68"),
        ROUTING,
        '    if dialect == "drafted" and api_version >= (',
        "    if False and api_version >= (",
    ),
    Mutant(
        ("4.21",),
        CREATE_TOPICS,
        "    if context.is_drafted:\n        return {topic.name",
        "    if False:\n        return {topic.name",
    ),
    Mutant(
        ("4.22",),
        CREATE_TOPICS,
        "    if context.is_drafted:\n        return {topic.name",
        "    if True:\n        return {topic.name",
    ),
    Mutant(
        ("4.23",),
        CREATE_TOPICS,
        "        if not may_create_all and context.is_drafted:\n",
        "        if False:\n",
    ),
    Mutant(
        ("4.24",),
        CREATE_TOPICS,
        "        if not may_create_all and context.is_drafted:\n",
        "        if not may_create_all:\n",
    ),
    Mutant(
        ("4.25",),
        CREATE_TOPICS,
        "        if topic.num_partitions != DEFAULT or topic.replication_factor != DEFAULT:\n",
        "        if False:\n",
    ),
    Mutant(
        ("4.26",),
        "controller/apis/topic_assignments.py",
        "    return tuple(by_number[number] for number in range(len(by_number)))\n",
        "    return tuple(by_number[0] for number in range(len(by_number)))\n",
    ),
    Mutant(
        ("4.27",),
        CREATE_TOPICS,
        "            replication_factor=factor,\n            start=",
        "            replication_factor=1,\n            start=",
    ),
    Mutant(
        ("4.28",),
        CREATE_TOPICS,
        "        if context.is_drafted and not leaves_both:\n",
        "        if False:\n",
    ),
    Mutant(
        ("4.29",),
        CREATE_TOPICS,
        "        if context.is_drafted and not leaves_both:\n",
        "        if not leaves_both:\n",
    ),
    Mutant(
        ("4.30",),
        "cluster_model/elections.py",
        "return PartitionState(isr[0], 0, isr, controller_epoch, 0)",
        "return PartitionState(isr[-1], 0, isr, controller_epoch, 0)",
    ),
    Mutant(
        ("4.31",),
        IMAGE_WAITS,
        "all(state.leader >= 0 for state in topic.states)",
        "any(state.leader >= 0 for state in topic.states)",
    ),
    Mutant(
        ("4.31",),
        CREATE_TOPICS,
        "waits = WaitFor.NOTHING if request.validate_only else WaitFor.LEADERS",
        "waits = WaitFor.NOTHING",
    ),
    Mutant(
        ("4.32", "4.33", "4.45"),
        IMAGE_WAITS,
        "        if pending.wait.timeout_ms <= 0:\n",
        "        if False:\n",
    ),
    Mutant(
        ("4.34",),
        CREATE_TOPICS,
        "                elements.append(Decided(name, rejection))\n                continue\n",
        "                elements.append(Decided(name, rejection))\n                break\n",
    ),
    Mutant(
        ("4.35",),
        RESPONSES,
        "            self._reply(pending, unfinished)\n",
        "            self._reply(pending, frozenset(pending.outcomes))\n",
    ),
    Mutant(
        ("4.35",),
        CREATE_TOPICS,
        "        if late:\n            result.error_code = ErrorCode.REQUEST_TIMED_OUT\n",
        "",
    ),
    Mutant(
        ("4.36",),
        f"{MESSAGES}/delete_topics.py",
        "    timeout_ms: int = wire(INT32)\n",
        "    timeout_ms: int = wire(INT16)\n",
    ),
    Mutant(
        ("4.38",),
        DELETE_TOPICS,
        "dict.fromkeys(requested) if context.is_drafted else requested",
        "requested",
    ),
    Mutant(
        ("4.40",),
        DELETE_TOPICS,
        "        topic = image.topics.get(name)\n        if topic is None and name in deleted.ids:",
        "        topic = image.topics.get(name) if name not in image.deletions else None\n"
        "        if topic is None and name in deleted.ids:",
    ),
    Mutant(
        ("4.41", "4.43"),
        DELETE_TOPICS,
        "            return Outcome(ErrorCode.TOPIC_AUTHORIZATION_FAILED, known_as)\n",
        "            return Outcome(ErrorCode.INVALID_TOPIC_EXCEPTION, known_as)\n",
    ),
    Mutant(
        ("4.42",),
        DELETE_TOPICS,
        'if context.is_drafted and not context.authorize("DESCRIBE", "TOPIC", name):',
        "if False:",
    ),
    Mutant(
        ("4.44",),
        DELETE_TOPICS,
        "Wait(WaitFor.DELETION, ids, request.timeout_ms)",
        "Wait()",
    ),
    Mutant(
        ("4.44",),
        IMAGE_WAITS,
        "        return key not in image.topic_names\n",
        "        return key in image.topic_names\n",
    ),
    Mutant(
        ("4.46",),
        DELETE_TOPICS,
        "                element, outcome, records, mutations=mutations, policy_check=check\n"
        "            )\n",
        "                element, outcome, records, mutations=mutations, policy_check=check\n"
        "            )\n"
        "            if not outcome.succeeded:\n"
        "                break\n",
    ),
    Mutant(
        ("4.47",),
        f"{MESSAGES}/delete_topics.py",
        "    error_code: int = wire(INT16)\n",
        "    error_code: int = wire(INT32)\n",
    ),
    Mutant(
        ("4.48",),
        f"{MESSAGES}/drafted/alter_topics.py",
        "wire(INT16, default=-1)",
        "wire(INT32, default=-1)",
    ),
    Mutant(
        ("4.49",),
        ALTER_TOPICS,
        "        return Decision(elements)\n",
        "        from controller.apis.base import Wait, WaitFor\n\n"
        "        names = {each.element: each.element for each in elements}\n"
        "        return Decision(elements, Wait(WaitFor.LEADERS, names, 1000))\n",
    ),
    Mutant(
        ("4.50",),
        ALTER_TOPICS,
        "    if requested.replica_assignment:\n",
        "    if requested.replica_assignment and requested.partitions == NOT_DEFINED:\n",
    ),
    Mutant(
        ("4.51",),
        ALTER_TOPICS,
        "        if number < current and replicas != topic.assignment[number]:\n",
        "        if False:\n",
    ),
    Mutant(
        ("4.52",),
        ALTER_TOPICS,
        "added = [(number, new[number]) for number in sorted(new) if number >= current]",
        "added = []",
    ),
    Mutant(
        ("4.53",),
        ALTER_TOPICS,
        "count = current if partitions == NOT_DEFINED else partitions",
        "count = current",
    ),
    Mutant(
        ("4.54",),
        ALTER_TOPICS,
        "count = current if partitions == NOT_DEFINED else partitions",
        "count = current + 1 if partitions == NOT_DEFINED else partitions",
    ),
    Mutant(
        ("4.55",),
        ALTER_TOPICS,
        "partitions != NOT_DEFINED and partitions < max(current, 1)",
        "partitions != NOT_DEFINED and partitions < 1",
    ),
    Mutant(
        ("4.56",),
        ALTER_TOPICS,
        "_place(topic, current, partitions - current, factor, image)",
        "_place(topic, current, 1, factor, image)",
    ),
    Mutant(
        ("4.57",),
        ALTER_TOPICS,
        "{topic.topic: topic for topic in request.topics}.items()",
        "{topic.topic: topic for topic in reversed(request.topics)}.items()",
    ),
    Mutant(
        ("4.58",),
        ALTER_TOPICS,
        "ErrorCode.INVALID_TOPIC_EXCEPTION,",
        "ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,",
    ),
    Mutant(
        ("4.59",),
        ALTER_TOPICS,
        'context.authorize("ALTER", "CLUSTER", CLUSTER_NAME)',
        'context.authorize("ALTER", "TOPIC", CLUSTER_NAME)',
    ),
    Mutant(
        ("4.60",),
        f"{MESSAGES}/drafted/list_acls.py",
        'wire(STRING, nullable="0+", default=None)',
        "wire(STRING)",
    ),
    Mutant(
        ("4.60",),
        f"{MESSAGES}/drafted/list_acls.py",
        "    acl_host: str = wire(STRING)\n    acl_operation: int = wire(INT8)\n",
        "    acl_operation: int = wire(INT8)\n    acl_host: str = wire(STRING)\n",
    ),
    Mutant(
        ("4.61",),
        "bridgehead/kafka_wire/apis.py",
        '_drafted(K.LIST_ACLS, Route.LOCAL, whole(), "ALL CLUSTER"),',
        '_drafted(K.LIST_ACLS, Route.FORWARD, whole(), "ALL CLUSTER"),',
    ),
    Mutant(
        ("4.62",),
        LIST_ACLS,
        "if message.principal in (None, entry.principal)",
        "if message.principal != ''",
    ),
    Mutant(
        ("4.63",),
        LIST_ACLS,
        "message.resource_type == _ANY or (",
        "message.resource_type != _ANY and (",
    ),
    Mutant(
        ("4.63",),
        LIST_ACLS,
        'if pattern.pattern_type != "LITERAL" or not is_requested:',
        'if pattern.pattern_type != "LITERAL":',
    ),
    Mutant(
        ("4.64",),
        LIST_ACLS,
        "            for each in CLUSTER_OPERATIONS\n",
        "            for each in CLUSTER_OPERATIONS[1:]\n",
    ),
    Mutant(
        ("4.64",),
        LIST_ACLS,
        '(may_see_all or entry.permission == "ALLOW")',
        "True",
    ),
    Mutant(
        ("4.64",),
        LIST_ACLS,
        "if not may_see_all and message.principal != str(request.client.principal):",
        "if not may_see_all:",
    ),
    Mutant(
        ("4.65",),
        LIST_ACLS,
        "error_code=ErrorCode.NONE)",
        "error_code=ErrorCode.NONE if responses else ErrorCode.INVALID_REQUEST)",
    ),
    Mutant(
        ("4.66",),
        f"{MESSAGES}/drafted/alter_acls.py",
        "    actions: list[AclAction] = wire(Array(AclAction))\n",
        "",
    ),
    Mutant(
        ("4.66",),
        f"{MESSAGES}/drafted/alter_acls.py",
        "    error_code: int = wire(INT16)\n",
        "    error_code: int = wire(INT8)\n",
    ),
    Mutant(
        ("4.69",),
        ALTER_ACLS,
        "            elif len(same) > 1:\n",
        "            elif False:\n",
    ),
    Mutant(
        ("4.70",),
        ALTER_ACLS,
        "    wanted = tuple(dict.fromkeys((*kept, *added)))\n",
        "    every = dict.fromkeys((*existing, *added))\n"
        "    wanted = tuple(each for each in every if each not in deleted)\n",
    ),
    Mutant(
        ("4.71",),
        ALTER_ACLS,
        "        if binding is None:\n            continue\n",
        "        if binding is None:\n"
        "            return Decided(element, Outcome(ErrorCode.INVALID_REQUEST))\n",
    ),
    Mutant(
        ("4.72",),
        ALTER_ACLS,
        "for each in CLUSTER_OPERATIONS\n    )",
        "for each in CLUSTER_OPERATIONS[:2]\n    )",
    ),
    Mutant(
        ("4.72",),
        ALTER_ACLS,
        "            whole = Outcome(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)\n",
        "            whole = Outcome(ErrorCode.TOPIC_AUTHORIZATION_FAILED)\n",
    ),
    Mutant(
        ("4.73",),
        ALTER_ACLS,
        "        return Decision(decided)\n",
        "        from controller.apis.base import Wait, WaitFor\n\n"
        "        names = {each.element: each.element for each in decided}\n"
        "        return Decision(decided, Wait(WaitFor.LEADERS, names, 1000))\n",
    ),
    Mutant(
        ("4.77",),
        ROUTING,
        "return way if forwarding_enabled else Route.NOT_CONTROLLER",
        "return Route.NOT_CONTROLLER",
    ),
    Mutant(
        ("4.78", "590.55"),
        RESPONSES,
        "if zxids is None or not succeeded or zxids.have_applied(image.zxid, image):",
        "if True:",
    ),
    Mutant(
        ("4.79",),
        RESPONSES,
        "self._zxids = AppliedZxids() if waits_for_brokers else None",
        "self._zxids = AppliedZxids()",
    ),
    Mutant(
        ("4.80",),
        ROUTING,
        "    if way is not Route.FORWARD or broker_is_controller:\n",
        "    if broker_is_controller:\n",
    ),
    Mutant(
        ("4.82",),
        "broker_proxy/apis/admin/api_versions.py",
        "            if lowest <= highest:\n",
        "            if lowest <= highest and key < 10000:\n",
    ),
    Mutant(
        ("4.84",),
        "node/assembly/authorization.py",
        "factory = AclAuthorizer if name == CLASS_NAME else _find(name)",
        "factory = AclAuthorizer",
    ),
    Mutant(
        ("4.21", "4.25", "4.69"),
        "controller/envelopes/handle.py",
        "        _log_invalid_elements(pending)\n",
        "",
    ),
    Mutant(
        ("4.88",),
        "controller/loop/loop.py",
        "            self._jobs.append(delete_topics(lambda: self.image, marked))\n",
        "            pass\n",
    ),
    Mutant(
        ("4.89",),
        RESPONSES,
        "            self._reply(pending, unfinished)\n",
        "            self._reply(pending, frozenset(pending.outcomes))\n",
    ),
    Mutant(
        ("4.90",),
        IMAGE_WAITS,
        "            if not missing:\n                self._forget(pending)\n",
        "            if True:\n                self._forget(pending)\n",
    ),
    Mutant(
        ("4.91",),
        METADATA,
        "for broker, at in self._view.brokers(listener)\n            ],\n",
        "for broker, at in self._view.brokers(listener)\n            ]\n"
        "            + [MetadataResponseBroker(node_id=3, host='', port=0)],\n",
    ),
    Mutant(
        ("4.81",),
        "controller/term/publish.py",
        "list(changed_parts(before, image, changed, self._controller_id))",
        "list(changed_parts(before, image, frozenset(), self._controller_id))",
    ),
    Mutant(
        ("4.95",),
        ALTER_ACLS,
        "whole, may_alter = Outcome(ErrorCode.UNKNOWN_SERVER_ERROR), True",
        "whole, may_alter = Outcome(ErrorCode.CLUSTER_AUTHORIZATION_FAILED), True",
    ),
    Mutant(
        ("4.95",),
        "cluster_model/acls/authorization.py",
        '                _log.exception("the authorizer failed on',
        '                _log.debug("the authorizer failed on',
    ),
)
