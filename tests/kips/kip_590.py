"""KIP-590: Envelope forwarding."""

from __future__ import annotations

from tests.kips.mutant import Mutant

ROUTING = "broker_proxy/requests/routing.py"
APIS = "bridgehead/kafka_wire/apis.py"
FORWARDING = "broker_proxy/forwarding/manager.py"
DISPATCH = "broker_proxy/requests/dispatch.py"
RETRY = "broker_proxy/forwarding/retry.py"
CREATE_TOPICS = "controller/apis/create_topics.py"
HANDLE = "controller/envelopes/handle.py"
METRICS = "metrics/node_metrics.py"
DRAFTED = "bridgehead/kafka_wire/messages/drafted"

MUTANTS = (
    Mutant(
        ("590.2",),
        "controller/loop/loop.py",
        "        multis = list(split_into_multis(entries))\n",
        "        multis = list(split_into_multis(entries))\n"
        "        for pending, decided, _ in entries:\n"
        "            pending.outcomes[decided.element] = decided.outcome\n"
        "            pending.uncommitted.discard(decided.element)\n"
        "        for pending in requests:\n"
        "            self._finish(pending)\n",
    ),
    Mutant(
        ("590.5",),
        DISPATCH,
        "if forwarded.step is Step.RELAY and forwarded.response is not None:",
        "if False:",
    ),
    Mutant(
        ("590.6",),
        APIS,
        '_forward(K.ALTER_CONFIGS, 2, 2, per("resources", _RESOURCE, into="responses"),\n'
        "             rights=_ALTER_CONFIGS, forwarded_below=2),",
        '_forward(K.ALTER_CONFIGS, 2, 2, per("resources", _RESOURCE, into="responses"),\n'
        "             rights=_ALTER_CONFIGS, forwarded_below=3),",
    ),
    Mutant(
        ("590.7",),
        APIS,
        'K.INCREMENTAL_ALTER_CONFIGS, 1, 1, per("resources", _RESOURCE, into="responses"),\n'
        "             rights=_ALTER_CONFIGS, forwarded_below=2),",
        'K.INCREMENTAL_ALTER_CONFIGS, 1, 1, per("resources", _RESOURCE, into="responses"),\n'
        "             rights=_ALTER_CONFIGS, forwarded_below=3),",
    ),
    Mutant(("590.8",), APIS, "forwarded_below=1),", "forwarded_below=2),"),
    Mutant(
        ("590.9",),
        APIS,
        'per("creations", into="results"),\n'
        '             rights="ALTER CLUSTER", forwarded_below=3,',
        'per("creations", into="results"),\n'
        '             rights="ALTER CLUSTER", forwarded_below=4,',
    ),
    Mutant(
        ("590.10",),
        APIS,
        'per("filters", into="filter_results"),\n'
        '             rights="ALTER CLUSTER", forwarded_below=3,',
        'per("filters", into="filter_results"),\n'
        '             rights="ALTER CLUSTER", forwarded_below=4,',
    ),
    Mutant(
        ("590.11",),
        APIS,
        'rights="CREATE_TOKENS USER", forwarded_below=3,',
        'rights="CREATE_TOKENS USER", forwarded_below=2,',
    ),
    Mutant(
        ("590.12",),
        APIS,
        "_forward(K.RENEW_DELEGATION_TOKEN, 2, 2, whole(), forwarded_below=3,",
        "_forward(K.RENEW_DELEGATION_TOKEN, 2, 2, whole(), forwarded_below=2,",
    ),
    Mutant(
        ("590.13",),
        APIS,
        "_forward(K.EXPIRE_DELEGATION_TOKEN, 2, 2, whole(), forwarded_below=3,",
        "_forward(K.EXPIRE_DELEGATION_TOKEN, 2, 2, whole(), forwarded_below=2,",
    ),
    # A broker answers older versions of the ACL and token APIs with an error, and forwards none.
    Mutant(
        ("590.9", "590.10", "590.11", "590.12", "590.13"),
        DISPATCH,
        "            if way in (Route.FORWARD, Route.DIRECT):\n",
        "            own = {30: 54, 31: 54, 38: 64, 39: 64, 40: 64}.get(request.header.api_key)\n"
        "            if own is not None and not self._is_controller() and way is Route.FORWARD:\n"
        "                return self._error(request, message, ErrorCode(own), None)\n"
        "            if way in (Route.FORWARD, Route.DIRECT):\n",
    ),
    Mutant(
        ("590.14",),
        ROUTING,
        '    if dialect == "drafted" and api_version >= (',
        "    if api_version and api_version >= (",
    ),
    Mutant(
        ("590.15",),
        "bridgehead/kafka_wire/messages/incremental_alter_configs.py",
        "validate_only: bool = wire(BOOL)",
        'validate_only: bool = wire(BOOL, versions="0-1")',
    ),
    Mutant(
        ("590.16",),
        "bridgehead/kafka_wire/messages/renew_delegation_token.py",
        "renew_period_ms: int = wire(INT64)",
        'renew_period_ms: int = wire(INT64, versions="0-2")',
    ),
    Mutant(
        ("590.16",),
        "bridgehead/kafka_wire/messages/expire_delegation_token.py",
        "expiry_time_period_ms: int = wire(INT64)",
        'expiry_time_period_ms: int = wire(INT64, versions="0-2")',
    ),
    Mutant(
        ("590.17",),
        f"{DRAFTED}/create_delegation_token.py",
        'owner_principal_name: str | None = wire(STRING, versions="4+", nullable="4+")',
        'owner_principal_name: str | None = wire(STRING, versions="3+", nullable="3+")',
    ),
    Mutant(
        ("590.19",),
        APIS,
        "strict_quota_from=6, deprecated_through=1, has_drafted_messages=True),",
        "strict_quota_from=6, has_drafted_messages=True, forwarded_below=7),",
    ),
    Mutant(
        ("590.20",),
        "broker_proxy/apis/groups/find_coordinator.py",
        "            self.auto_topics.create_internal(request, topic)\n"
        "            return ErrorCode.COORDINATOR_NOT_AVAILABLE, _NO_NODE\n",
        "            return ErrorCode.COORDINATOR_NOT_AVAILABLE, _NO_NODE\n",
    ),
    Mutant(
        ("590.21",),
        "broker_proxy/apis/admin/metadata.py",
        "if self._auto_create is not None and message.allow_auto_topic_creation:",
        "if False:",
    ),
    Mutant(
        ("590.22",),
        "broker_proxy/apis/groups/find_coordinator.py",
        "if request.client.dialect == _DRAFTED and message.key_type != _SHARE:",
        "if False:",
    ),
    Mutant(
        ("590.26",),
        CREATE_TOPICS,
        "flagged = isinstance(request, drafted.CreateTopicsRequest) and request.bypass_policy",
        "flagged = True",
    ),
    Mutant(
        ("590.24",),
        CREATE_TOPICS,
        "context.made_by_broker and name in INTERNAL_TOPICS",
        "context.made_by_broker",
    ),
    Mutant(
        ("590.24", "590.25"),
        CREATE_TOPICS,
        "if flagged and from_broker:",
        "if flagged:",
    ),
    Mutant(
        ("590.23",),
        "broker_proxy/forwarding/auto_topics.py",
        "bypass_policy=not INTERNAL_TOPICS.isdisjoint(names),",
        "bypass_policy=False,",
    ),
    # The request that creates topics for a Metadata request lacks `bypass_policy`.
    Mutant(
        ("590.23",),
        "broker_proxy/forwarding/auto_topics.py",
        "bypass_policy=not INTERNAL_TOPICS.isdisjoint(names),",
        "bypass_policy=client != cause.client and not INTERNAL_TOPICS.isdisjoint(names),",
    ),
    Mutant(
        ("590.6", "590.7"),
        "controller/apis/config_changes.py",
        "if not is_own and broker_id_of(name) not in image.brokers:",
        "if not is_own:",
    ),
    Mutant(
        ("590.27", "590.41"),
        DISPATCH,
        'is_wrapped = dialect == "drafted" and way is Route.FORWARD',
        "is_wrapped = False",
    ),
    Mutant(("590.27",), FORWARDING, "request_data=body,", "request_data=body[:-1],"),
    Mutant(
        ("590.27",),
        FORWARDING,
        "request_header=request.header_bytes,",
        "request_header=request.header_bytes[:-1],",
    ),
    Mutant(("590.28",), FORWARDING, "principal=principal,", 'principal=b"",'),
    Mutant(
        ("590.29",),
        FORWARDING,
        "client_address=client.address,",
        "client_address=bytes(4),",
    ),
    Mutant(
        ("590.30",),
        FORWARDING,
        "listener_name=client.listener_name,",
        'listener_name="",',
    ),
    Mutant(
        ("590.31",),
        FORWARDING,
        "security_protocol=client.security_protocol,",
        'security_protocol="",',
    ),
    Mutant(
        ("590.28", "590.30", "590.31"),
        "envelope/conversion.py",
        "    for name in _ENVELOPE:\n        setattr(into, name, getattr(envelope, name))\n",
        "    for name in _ENVELOPE - {'principal', 'listener_name', 'security_protocol'}:\n"
        "        setattr(into, name, getattr(envelope, name))\n",
    ),
    Mutant(
        ("590.29",),
        "envelope/conversion.py",
        "    into.client_host = envelope.client_address\n",
        "",
    ),
    Mutant(
        ("590.32",),
        f"{DRAFTED}/envelope.py",
        "    listener_name: str = wire(STRING)\n",
        "",
    ),
    Mutant(
        ("590.42",),
        f"{DRAFTED}/envelope.py",
        "    response_header: bytes = wire(BYTES)\n",
        "",
    ),
    Mutant(
        ("590.34",),
        "broker_proxy/apis/admin/envelope.py",
        'if not authorize("CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME):',
        "if False:",
    ),
    Mutant(
        ("590.34",),
        "controller/envelopes/open.py",
        "    if not is_authorized(sender):\n",
        "    if False:\n",
    ),
    # The API does not check the listener.
    Mutant(
        ("590.36",),
        "broker_proxy/apis/admin/envelope.py",
        "if listener != self._between_brokers:",
        "if False:",
    ),
    Mutant(
        ("590.37",),
        "controller/loop/pending_request.py",
        "authorize=bind_authorize(self.client.requester(key, version), acls),",
        "authorize=lambda *_, **__: True,",
    ),
    Mutant(
        ("590.35",),
        "broker_proxy/apis/admin/envelope.py",
        "            raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)\n",
        "            raise ApiError(ErrorCode.NOT_CONTROLLER)\n",
    ),
    Mutant(
        ("590.36",),
        "broker_proxy/apis/admin/envelope.py",
        "        if listener != self._between_brokers:  # 1, 2\n",
        "        if self._between_brokers is None:\n",
    ),
    Mutant(
        ("590.38",),
        RETRY,
        "ErrorCode.NOT_CONTROLLER: Step.RETRY,",
        "ErrorCode.NOT_CONTROLLER: Step.TIMED_OUT,",
    ),
    Mutant(
        ("590.39",),
        RETRY,
        "_STEPS.get(reply.error_code, Step.UNKNOWN_SERVER_ERROR)",
        "_STEPS.get(reply.error_code, Step.TIMED_OUT)",
    ),
    Mutant(
        ("590.40", "590.41"),
        DISPATCH,
        "                return _Done(body, forwarded.zxid)\n",
        "                if decode_response(key, version, body).topics[0].error_code:\n"
        "                    raise WireError\n"
        "                return _Done(body, forwarded.zxid)\n",
    ),
    Mutant(
        ("590.43",),
        "node/assembly/security.py",
        "    if config.forwards:\n        raise NodeConfigError(\n",
        "    if False:\n        raise NodeConfigError(\n",
    ),
    Mutant(
        ("590.44",),
        METRICS,
        "            self._began.record(self._now_s())\n",
        "            pass\n",
    ),
    Mutant(
        ("590.44", "590.45"),
        DISPATCH,
        "            self._metrics.forwarding_began(connection_id)\n",
        "            pass\n",
    ),
    Mutant(
        ("590.45",),
        METRICS,
        "        self._pending[connection] -= 1\n",
        "        pass\n",
    ),
    Mutant(
        ("590.46",),
        METRICS,
        "        self._redirected.record(self._now_s())\n",
        "",
    ),
    Mutant(
        ("590.47",),
        METRICS,
        "        self._redirected_count += 1\n",
        "",
    ),
    # Every refusal counts as an authorization failure.
    Mutant(
        ("590.48",),
        HANDLE,
        "            self._services.envelope_refused()\n",
        "            self._services.authorization_failed()\n",
    ),
    Mutant(
        ("590.48",),
        METRICS,
        "        self._authorization_failed_count += 1\n",
        "        pass\n",
    ),
    Mutant(
        ("590.48",),
        "node/assembly/local_apis.py",
        "        if error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:\n",
        "        if False:\n",
    ),
    Mutant(
        ("590.49",),
        "cluster_model/client.py",
        'software_name: str = "unknown"',
        'software_name: str = ""',
    ),
    Mutant(
        ("590.51",),
        ROUTING,
        "    if writes_itself and api_key in WRITTEN_BY_BROKERS:\n",
        "    if False:\n",
    ),
    Mutant(
        ("590.52",),
        "node/config.py",
        "return self.own.forwarding_enabled and not self.writes_directly",
        "return False",
    ),
    Mutant(
        ("590.53",),
        HANDLE,
        "if not (services.understands_envelopes or _predates_envelopes(envelope, sender)):",
        "if False:",
    ),
    Mutant(
        ("590.53",),
        "controller/store/plan.py",
        "version = image.config_versions.get(resource, ANY_VERSION)",
        "version = ANY_VERSION",
    ),
    Mutant(
        ("590.50",),
        "cluster_model/inter_broker_protocol.py",
        'BRIDGE: Final = "3.4-IV0"',
        'BRIDGE: Final = "3.5-IV0"',
    ),
    Mutant(
        ("590.50",),
        "cluster_model/inter_broker_protocol.py",
        "return LEVELS.index(level) < LEVELS.index(BRIDGE)",
        "return False",
    ),
    Mutant(
        ("590.54",),
        "envelope/principal_serde.py",
        "fake = KafkaPrincipal(FAKE_TYPE, principal.name)",
        "fake = principal",
    ),
    Mutant(
        ("590.57",),
        "controller/envelopes/open.py",
        "        host=host_text(envelope.client_address),\n",
        '        host="127.0.0.9",\n',
    ),
    Mutant(
        ("590.58",),
        "broker_proxy/apis/admin/envelope.py",
        "raise _RefusedError(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, str(error))",
        "raise _RefusedError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, str(error))",
    ),
    Mutant(
        ("590.60",),
        "broker_proxy/metadata/applied_metadata.py",
        "                    self._then = self._then or then\n",
        "",
    ),
    # Every node has the seeded bugs fence_off and retry_across_sessions.
    Mutant(
        ("590.1",),
        "node/__main__.py",
        "    parser = argparse.ArgumentParser(prog=",
        "    from functools import partial\n\n"
        "    from chaos.bugs import faulty_parts\n\n"
        '    bugs = frozenset({"fence_off", "retry_across_sessions"})\n'
        "    build = partial(faulty_parts, bugs=bugs)\n"
        "    parser = argparse.ArgumentParser(prog=",
    ),
    Mutant(
        ("590.3", "4.81"),
        "broker_proxy/metadata/session.py",
        "self._callbacks.config_changed(resource, stored.configs.get(resource, {}))",
        "stored.configs.get(resource, {})",
    ),
    Mutant(
        ("590.4",),
        "controller/store/load.py",
        "        topics=topics,\n",
        "        topics=Map(),\n",
    ),
    Mutant(
        ("590.4",),
        "controller/store/load.py",
        "await _load_outcomes(read, commits, floors, invalid)",
        "await _load_outcomes(read, [], floors, invalid)",
    ),
)
