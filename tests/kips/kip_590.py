"""KIP-590: Envelope forwarding."""

from __future__ import annotations

from tests.kips.changes import (
    argument,
    assigned,
    both,
    call,
    condition,
    definition,
    entry,
    expression,
    iterated,
    operand,
    returned,
    statement,
    value,
)
from tests.kips.mutant import Mutant

ROUTING = "broker_proxy.requests.routing"
APIS = "bridgehead.kafka_wire.apis"
FORWARDING = "broker_proxy.forwarding.manager"
DISPATCH = "broker_proxy.requests.dispatch"
RELAY = "broker_proxy.requests.relay"
RETRY = "broker_proxy.forwarding.retry"
AUTO_TOPICS = "broker_proxy.forwarding.auto_topics"
FIND_COORDINATOR = "broker_proxy.apis.groups.find_coordinator"
ENVELOPE = "broker_proxy.apis.admin.envelope"
CREATE_TOPICS = "controller.apis.create_topics"
HANDLE = "controller.envelopes.handle"
OPEN = "controller.envelopes.open"
LOAD = "controller.store.load"
CONVERSION = "envelope.conversion"
METRICS = "metrics.node_metrics"
PROTOCOL = "cluster_model.inter_broker_protocol"
RENEW_TOKEN = "bridgehead.kafka_wire.messages.renew_delegation_token"
EXPIRE_TOKEN = "bridgehead.kafka_wire.messages.expire_delegation_token"
INCREMENTAL_ALTER_CONFIGS = "bridgehead.kafka_wire.messages.incremental_alter_configs"
DRAFTED_CREATE_TOKEN = "bridgehead.kafka_wire.messages.drafted.create_delegation_token"
DRAFTED_ENVELOPE = "bridgehead.kafka_wire.messages.drafted.envelope"

MUTANTS = (
    Mutant(
        ("590.2",),
        "controller.loop.loop",
        "ControllerLoop._round",
        statement(
            "split_into_multis($entries)", where="_handle_conflict(..., $requests)"
        ).followed_by("""
            for pending, decided, _ in $entries:
                pending.outcomes[decided.element] = decided.outcome
                pending.uncommitted.discard(decided.element)
            for pending in $requests:
                self._finish(pending)
        """),
    ),
    Mutant(("590.5",), RELAY, "Relay._relay", condition("NextStep.RELAY").never()),
    Mutant(
        ("590.6",),
        APIS,
        "_ROWS",
        call("_forward(K.ALTER_CONFIGS, ...)").with_arguments(forwarded_below="3"),
    ),
    Mutant(
        ("590.7",),
        APIS,
        "_ROWS",
        call("_forward(K.INCREMENTAL_ALTER_CONFIGS, ...)").with_arguments(forwarded_below="3"),
    ),
    Mutant(
        ("590.8",),
        APIS,
        "_ROWS",
        call("_forward(K.ALTER_CLIENT_QUOTAS, ...)").with_arguments(forwarded_below="2"),
    ),
    Mutant(
        ("590.9",),
        APIS,
        "_ROWS",
        call("_forward(K.CREATE_ACLS, ...)").with_arguments(forwarded_below="4"),
    ),
    Mutant(
        ("590.10",),
        APIS,
        "_ROWS",
        call("_forward(K.DELETE_ACLS, ...)").with_arguments(forwarded_below="4"),
    ),
    Mutant(
        ("590.11",),
        APIS,
        "_ROWS",
        call("_forward(K.CREATE_DELEGATION_TOKEN, ...)").with_arguments(forwarded_below="2"),
    ),
    Mutant(
        ("590.12",),
        APIS,
        "_ROWS",
        call("_forward(K.RENEW_DELEGATION_TOKEN, ...)").with_arguments(forwarded_below="2"),
    ),
    Mutant(
        ("590.13",),
        APIS,
        "_ROWS",
        call("_forward(K.EXPIRE_DELEGATION_TOKEN, ...)").with_arguments(forwarded_below="2"),
    ),
    # A broker answers older versions of the ACL and token APIs with an error, and forwards none.
    Mutant(
        ("590.9", "590.10", "590.11", "590.12", "590.13"),
        DISPATCH,
        "Dispatcher._execute",
        statement(
            "$route in (Route.FORWARD, Route.DIRECT)",
            where="_error($request, $message, ErrorCode.NOT_CONTROLLER, None)",
        ).preceded_by("""
            own = {30: 54, 31: 54, 38: 64, 39: 64, 40: 64}.get($request.header.api_key)
            if own is not None and not self._is_controller() and $route is Route.FORWARD:
                return self._error($request, $message, ErrorCode(own), None)
        """),
    ),
    Mutant(
        ("590.14",),
        ROUTING,
        "choose_route",
        operand("'drafted'", where="$version >= (DRAFTED_SPECS[...].forwarded_below or 0)").becomes(
            "$version"
        ),
    ),
    Mutant(
        ("590.15",),
        INCREMENTAL_ALTER_CONFIGS,
        "IncrementalAlterConfigsRequest.validate_only",
        call("wire").with_arguments(versions="'0-1'"),
    ),
    Mutant(
        ("590.16",),
        RENEW_TOKEN,
        "RenewDelegationTokenRequest.renew_period_ms",
        call("wire").with_arguments(versions="'0-2'"),
    ),
    Mutant(
        ("590.16",),
        EXPIRE_TOKEN,
        "ExpireDelegationTokenRequest.expiry_time_period_ms",
        call("wire").with_arguments(versions="'0-2'"),
    ),
    Mutant(
        ("590.17",),
        DRAFTED_CREATE_TOKEN,
        "CreateDelegationTokenRequest.owner_principal_name",
        call("wire").with_arguments(versions="'3+'", nullable="'3+'"),
    ),
    Mutant(
        ("590.19",),
        APIS,
        "_ROWS",
        both(
            call("_forward(K.CREATE_TOPICS, ...)").without("deprecated_through"),
            call("_forward(K.CREATE_TOPICS, ...)").with_arguments(forwarded_below="7"),
        ),
    ),
    Mutant(
        ("590.20",),
        FIND_COORDINATOR,
        "FindCoordinator._look_up",
        statement("create_internal").removed(),
    ),
    Mutant(
        ("590.21",),
        "broker_proxy.apis.admin.metadata",
        "Metadata.handle",
        condition("allow_auto_topic_creation").never(),
    ),
    Mutant(("590.22",), FIND_COORDINATOR, "FindCoordinator.handle", condition("_DRAFTED").never()),
    Mutant(
        ("590.26",), CREATE_TOPICS, "CreateTopics._policy_check", assigned("bypass_policy").always()
    ),
    Mutant(
        ("590.24",),
        CREATE_TOPICS,
        "CreateTopics._policy_check",
        operand("INTERNAL_TOPICS").removed(),
    ),
    Mutant(
        ("590.24", "590.25"),
        CREATE_TOPICS,
        "CreateTopics._policy_check",
        condition("$flagged and $from_broker").becomes("$flagged"),
    ),
    Mutant(
        ("590.23",),
        AUTO_TOPICS,
        "AutoTopics._create",
        call("CreateTopicsRequest").with_arguments(bypass_policy="False"),
    ),
    # The request that creates topics for a Metadata request lacks `bypass_policy`.
    Mutant(
        ("590.23",),
        AUTO_TOPICS,
        "AutoTopics._create",
        call(
            "CreateTopicsRequest", where="broker_request(..., $client, cause=$cause)"
        ).with_arguments(bypass_policy="$client != $cause.client and $old"),
    ),
    Mutant(
        ("590.6", "590.7"),
        "controller.apis.config_changes",
        "ConfigApi._check_wrapped",
        operand("brokers").removed(),
    ),
    Mutant(
        ("590.27", "590.41"),
        "broker_proxy.requests.split",
        "Writes._split",
        assigned("Route.FORWARD").never(),
    ),
    Mutant(
        ("590.27",),
        FORWARDING,
        "ForwardingManager._envelope",
        call("Envelope").with_arguments(request_data="$old[:-1]"),
    ),
    Mutant(
        ("590.27",),
        FORWARDING,
        "ForwardingManager._envelope",
        call("Envelope").with_arguments(request_header="$old[:-1]"),
    ),
    Mutant(
        ("590.28",),
        FORWARDING,
        "ForwardingManager._envelope",
        call("Envelope").with_arguments(principal="b''"),
    ),
    Mutant(
        ("590.29",),
        FORWARDING,
        "ForwardingManager._envelope",
        call("Envelope").with_arguments(client_address="bytes(4)"),
    ),
    Mutant(
        ("590.30",),
        FORWARDING,
        "ForwardingManager._envelope",
        call("Envelope").with_arguments(listener_name="''"),
    ),
    Mutant(
        ("590.31",),
        FORWARDING,
        "ForwardingManager._envelope",
        call("Envelope").with_arguments(security_protocol="''"),
    ),
    Mutant(
        ("590.28", "590.30", "590.31"),
        CONVERSION,
        "envelope_to_pb",
        iterated("_ENVELOPE").becomes("$old - {'principal', 'listener_name', 'security_protocol'}"),
    ),
    Mutant(("590.29",), CONVERSION, "envelope_to_pb", statement("client_address").removed()),
    Mutant(
        ("590.32",),
        DRAFTED_ENVELOPE,
        "EnvelopeRequest.listener_name",
        argument("wire", 0).becomes("BYTES"),
    ),
    Mutant(
        ("590.42",), DRAFTED_ENVELOPE, "EnvelopeResponse.response_header", definition().removed()
    ),
    Mutant(("590.34",), ENVELOPE, "EnvelopeApi._open", condition("'CLUSTER_ACTION'").never()),
    Mutant(("590.34",), OPEN, "check_sender", condition("$is_authorized($sender)").never()),
    # The API does not check the listener.
    Mutant(("590.36",), ENVELOPE, "EnvelopeApi._open", condition("_between_brokers").never()),
    Mutant(
        ("590.37",),
        "controller.requests.pending_request",
        "PendingRequest.new_context",
        call("RequestContext").with_arguments(authorize="lambda *_, **__: True"),
    ),
    Mutant(
        ("590.35",),
        ENVELOPE,
        "EnvelopeApi._open",
        expression("ErrorCode.CLUSTER_AUTHORIZATION_FAILED").becomes("ErrorCode.NOT_CONTROLLER"),
    ),
    Mutant(
        ("590.32",),
        ENVELOPE,
        "_inner_request",
        call("dataclasses.replace").without("listener_name"),
    ),
    Mutant(
        ("590.36",),
        ENVELOPE,
        "EnvelopeApi._open",
        condition("_between_brokers").becomes("self._between_brokers is None"),
    ),
    Mutant(
        ("590.38",),
        RETRY,
        "_STEPS",
        entry("ErrorCode.NOT_CONTROLLER").becomes("NextStep.TIMED_OUT"),
    ),
    Mutant(
        ("590.39",), RETRY, "after_reply", argument("_STEPS.get", 1).becomes("NextStep.TIMED_OUT")
    ),
    Mutant(
        ("590.40", "590.41"),
        RELAY,
        "Relay._relay",
        statement(
            "EncodedResponse($body, $forwarded.zxid)",
            where="throttle_time_ms($key, $version, $body)",
        ).preceded_by("""
            from bridgehead.kafka_wire.codec import decode_response

            if decode_response($key, $version, $body).topics[0].error_code:
                raise WireError
        """),
    ),
    Mutant(("590.43",), "node.assembly.security", "_serde_of", condition("forwards").never()),
    Mutant(("590.44",), METRICS, "NodeMetrics.forwarding_began", statement("_began").removed()),
    Mutant(
        ("590.44", "590.45"),
        RELAY,
        "Relay.forward",
        statement("forwarding_began").removed(),
    ),
    Mutant(
        ("590.45",), METRICS, "NodeMetrics.forwarding_ended", statement("_pending", "1").removed()
    ),
    Mutant(
        ("590.45",),
        "metrics.names",
        "CLIENTS_FORWARDING_AS_SPELLED",
        expression("'num_client_fowarding_to_controller_count'").becomes("'num_client_forwarding'"),
    ),
    Mutant(
        ("590.46",), METRICS, "NodeMetrics.message_redirected", statement("_redirected").removed()
    ),
    Mutant(
        ("590.47",),
        METRICS,
        "NodeMetrics.message_redirected",
        statement("_redirected_count").removed(),
    ),
    # Every refusal counts as an authorization failure.
    Mutant(
        ("590.48",),
        HANDLE,
        "EnvelopeHandler._reject",
        call("envelope_rejected").renamed("authorization_failed"),
    ),
    Mutant(
        ("590.48",),
        METRICS,
        "NodeMetrics.authorization_failed",
        statement("_authorization_failed_count").removed(),
    ),
    Mutant(
        ("590.48",),
        "node.assembly.local_apis",
        "_client_envelopes.rejected",
        condition("ErrorCode.CLUSTER_AUTHORIZATION_FAILED").never(),
    ),
    Mutant(("590.49",), "cluster_model.client", "Client.software_name", value().becomes("''")),
    Mutant(("590.51",), ROUTING, "choose_route", condition("WRITTEN_BY_BROKERS").never()),
    Mutant(("590.51",), AUTO_TOPICS, "AutoTopics._create", condition("_write_directly").never()),
    Mutant(
        ("590.51",),
        "controller.term.topic_follower",
        "TopicFollower._follow",
        statement("_take").removed(),
    ),
    Mutant(
        ("590.51",),
        "controller.direct.writer",
        "DirectWriter._write",
        condition("PartitionRecord").always(),
    ),
    Mutant(("590.52",), "node.config", "NodeConfig.forwards", returned().never()),
    Mutant(
        ("590.53",), HANDLE, "EnvelopeHandler.handle", condition("understands_envelopes").never()
    ),
    Mutant(
        ("590.53",),
        "controller.store.plan",
        "_write_config",
        assigned("config_versions").becomes("ANY_VERSION"),
    ),
    Mutant(("590.50",), PROTOCOL, "BRIDGE", value().becomes("'3.5-IV0'")),
    Mutant(("590.50",), PROTOCOL, "is_below_the_bridge", returned().never()),
    Mutant(
        ("590.54",),
        "envelope.principal_serde",
        "FakePrincipalSerde.serialize",
        assigned("KafkaPrincipal(FAKE_TYPE, $principal.name)").becomes("$principal"),
    ),
    Mutant(("590.57",), OPEN, "open_envelope", call("Client").with_arguments(host="'127.0.0.9'")),
    Mutant(
        ("590.58",),
        ENVELOPE,
        "EnvelopeApi._open",
        expression("ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE").becomes(
            "ErrorCode.CLUSTER_AUTHORIZATION_FAILED"
        ),
    ),
    Mutant(
        ("590.60",),
        "broker_proxy.metadata.applied_metadata",
        "AppliedMetadata._follow",
        statement("self._then or $then").removed(),
    ),
    # Every node has the seeded bugs fence_off and retry_across_sessions.
    Mutant(
        ("590.1",),
        "node.__main__",
        "main",
        statement("ArgumentParser", where="_run($options, $build)").preceded_by("""
            from functools import partial
            from chaos.bugs import faulty_parts
            bugs = frozenset({"fence_off", "retry_across_sessions"})
            $build = partial(faulty_parts, bugs=bugs)
        """),
    ),
    Mutant(
        ("590.3", "4.81"),
        "broker_proxy.metadata.session",
        "_config_follower",
        argument("ConfigFollower", 0).becomes("lambda _resource, _configs: None"),
    ),
    Mutant(("590.4",), LOAD, "load", call("MetadataImage").with_arguments(topics="Map()")),
    Mutant(("590.4",), LOAD, "load", argument("_load_outcomes", 1).becomes("[]")),
)
