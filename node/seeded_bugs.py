"""Faulty collaborators of a node. Tests build nodes with them to prove that a check can fail.

Production never imports this module.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, fields, replace
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, cast

from bridgehead.authorizer import (
    AccessControlEntry,
    Acls,
    Action,
    Authorizer,
    Operation,
    Requester,
    ResourcePattern,
    ResourceType,
    Verdict,
)
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.codec import decode_request, encode_request
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.headers import decode_request_header
from broker_proxy.authentication.authenticator import Dispatch, Expired, SaslAuthenticator
from broker_proxy.authentication.authenticator import Outcome as LoginOutcome
from broker_proxy.forwarding.manager import ForwardingManager
from broker_proxy.metadata.learned_acls import LearnedAcls
from broker_proxy.metadata.session import ZooKeeperWatcher
from cluster_model.acls.bindings import Entries
from cluster_model.image import MetadataImage
from cluster_model.records import ConfigRecord, ConfigResource
from cluster_model.znodes.operations import SetData
from cluster_model.znodes.layout import CommitZnode
from controller.apis.base import AdminApi, Decided, Decision, Outcome, RequestContext
from controller.services import THIS_PROCESS, Sender, Services, Settings
from controller.store.port import Committed, ContentConflictError, Fence
from controller.store.zookeeper import FENCE_OPERATIONS, ZooKeeperStore
from data_plane.groups.loading import Replay
from data_plane.groups.records import GroupRecord, OffsetKey, OffsetValue
from data_plane.groups.service import GroupService
from data_plane.partition import Partition
from data_plane.partitions import Partitions
from data_plane.records.compaction import LastOffsets
from envelope.messages import Envelope, EnvelopeReply, Hello
from envelope.principal_serde import PrincipalSerde
from node import kafka_bugs, recovery_bugs
from node.broker_bugs import OvertakingServer, channel_with_repeats
from node.collaborators import PRODUCTION, Collaborators
from node.config import NodeConfig
from node.assembly.parts import Parts, build_parts

# --- The controller's store ----------------------------------------------------------------------


class UnfencedStore(kafka_bugs.ZombieStore):
    """fence_off: checks neither the controller epoch nor the commit counter."""

    async def elect(self, broker_id: int, now_ms: int) -> Fence | None:
        """See ZooKeeperStore."""
        fence = await super().elect(broker_id, now_ms)
        if fence is not None:
            # Each epoch has its own range of numbers. With equal numbers, the second creation of an
            # outcome znode would fail, and so act as a fence.
            self._commit_number += fence.epoch * 1_000_000
        return fence

    def _fence_operations(self, fence: Fence, number: int) -> list[bytes]:
        return [self.encode(SetData(CommitZnode.path, b"%d" % number))] * FENCE_OPERATIONS


class CountingStore(ZooKeeperStore):
    """counts_operations: reports zxids as if each operation of a multi were a transaction."""

    async def commit_pipelined(
        self, fence: Fence, effects: Sequence[Sequence[bytes]]
    ) -> tuple[list[Committed], ContentConflictError | None]:
        """See ZooKeeperStore."""
        committed, conflict = await super().commit_pipelined(fence, effects)
        pairs = zip(committed, effects, strict=False)
        return [each._replace(zxid=each.zxid + len(own)) for each, own in pairs], conflict


ZOMBIE_STORES: Final[Mapping[str, type[ZooKeeperStore]]] = {
    "fence_off": UnfencedStore,
    **kafka_bugs.ZOMBIE_STORES,
}
STORES: Final[Mapping[str, type[ZooKeeperStore]]] = {
    "counts_operations": CountingStore,
    "leaves_sessions_open": recovery_bugs.AbandoningStore,
    "pings_while_blocked": recovery_bugs.PingingStore,
    "stays_at_one_member": recovery_bugs.StayingStore,
    **ZOMBIE_STORES,
    **kafka_bugs.STORES,
}


# --- Envelopes -----------------------------------------------------------------------------------


class EnvelopeRewriter:
    """Changes the Envelopes that one controller receives."""

    def __init__(self, bugs: frozenset[str], serde: PrincipalSerde) -> None:
        self._bugs = bugs
        self._serde = serde
        self._previous: Envelope | None = None

    def rewrite(self, envelope: Envelope, sender: Sender) -> Envelope:
        """Return the Envelope as the seeded bugs change it."""
        original, previous = envelope, self._previous
        if "fill_in_default" in self._bugs:
            envelope = _with_own_timeout(envelope)
        if sender.host != THIS_PROCESS:
            if "drop_principal" in self._bugs:
                own = self._serde.serialize(sender.principal)
                envelope = replace(envelope, principal=own)
            if "swap_principals" in self._bugs and previous is not None:
                envelope = replace(envelope, principal=previous.principal)
            if "broker_host" in self._bugs:
                envelope = replace(envelope, client_address=ip_address(sender.host).packed)
        self._previous = original
        return envelope


def _with_own_timeout(envelope: Envelope) -> Envelope:
    header, _ = decode_request_header(envelope.request_header, envelope.dialect)
    of = (header.api_key, header.api_version)
    request = decode_request(*of, envelope.request_data, dialect=envelope.dialect)
    if hasattr(request, "timeout_ms"):
        request.timeout_ms = 12_345
    body = encode_request(*of, request, dialect=envelope.dialect)
    return replace(envelope, request_data=body)


@dataclass(frozen=True, slots=True)
class _WithoutPolicies:
    api: AdminApi
    skips: Callable[[RequestContext, Any], bool]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.api, name)

    def decide(
        self,
        context: RequestContext,
        request: Any,
        image: MetadataImage,
        committed: Mapping[str, Outcome],
    ) -> Decision:
        """See AdminApi."""
        decision = self.api.decide(context, request, image, committed)
        if not self.skips(context, request):
            return decision
        unchecked = [replace(each, policy_check=None) for each in decision.elements]
        return replace(decision, elements=unchecked)


def without_policies(api: AdminApi, skips: Callable[[RequestContext, Any], bool]) -> AdminApi:
    """Remove the policy checks of the requests that `skips` selects."""
    return cast(AdminApi, _WithoutPolicies(api, skips))


def honour_client_bypass(create_topics: AdminApi) -> AdminApi:
    """honour_client_bypass: a client bypasses the policy with the flag for internal topics."""
    return without_policies(create_topics, lambda _, r: getattr(r, "bypass_policy", False))


def skip_policy_on_retry(api: AdminApi, resent: Set[str]) -> AdminApi:
    """skip_policy_on_retry: the policy does not check the requests whose ids are in `resent`."""
    return without_policies(api, lambda context, _: context.request_id in resent)


@dataclass(frozen=True, slots=True)
class _FaultyApi:
    """An API whose requests or responses are changed."""

    api: AdminApi
    change_request: Callable[[Any], Any] = lambda request: request
    change_response: Callable[[Any], Any] = lambda response: response

    def __getattr__(self, name: str) -> Any:
        return getattr(self.api, name)

    def decide(self, context: RequestContext, request: Any, *others: Any) -> Decision:
        """See AdminApi."""
        return self.api.decide(context, self.change_request(request), *others)

    def response(self, *arguments: Any) -> Any:
        """See AdminApi."""
        return self.change_response(self.api.response(*arguments))


def _without_validate_only(request: Any) -> Any:
    """ignores_validate_only: a request that should only be validated is executed."""
    return replace(request, validate_only=False)


def _without_last_result(response: Any) -> Any:
    """omits_last_result: the last of several topics has no result."""
    return replace(response, topics=response.topics[:-1]) if response.topics[1:] else response


@dataclass(slots=True)
class _DecidesOnOldImages:
    """decides_on_old_images: a change is decided on an image without the change before it."""

    api: AdminApi
    newest: MetadataImage | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.api, name)

    def decide(
        self, context: RequestContext, request: Any, image: MetadataImage, *others: Any
    ) -> Decision:
        """See AdminApi."""
        older, self.newest = self.newest or image, image
        return self.api.decide(context, request, older, *others)


@dataclass(frozen=True, slots=True)
class _RejectsTheRest:
    """rejects_the_rest: after a rejected element, all further elements get its error."""

    api: AdminApi

    def __getattr__(self, name: str) -> Any:
        return getattr(self.api, name)

    def decide(self, context: RequestContext, request: Any, *others: Any) -> Decision:
        """See AdminApi."""
        decision = self.api.decide(context, request, *others)
        elements, rejection = [], None
        for each in decision.elements:
            if rejection is None and not each.outcome.succeeded:
                rejection = each.outcome
            elements.append(each if rejection is None else Decided(each.element, rejection))
        return replace(decision, elements=elements)


@dataclass(frozen=True, slots=True)
class _WritesRejectedConfigs:
    """writes_rejected_configs: a rejected CreateTopics writes its configs to the existing topic."""

    api: AdminApi

    def __getattr__(self, name: str) -> Any:
        return getattr(self.api, name)

    def decide(self, context: RequestContext, request: Any, *others: Any) -> Decision:
        """See AdminApi."""
        decision = self.api.decide(context, request, *others)
        configs = {
            topic.name: ConfigRecord(
                ConfigResource("topics", topic.name),
                {config.name: config.value for config in topic.configs},
            )
            for topic in request.topics
        }
        elements = [
            replace(each, records=(configs[each.element],))
            if each.outcome.error is ErrorCode.TOPIC_ALREADY_EXISTS
            else each
            for each in decision.elements
        ]
        return replace(decision, elements=elements)


class CountsAttempts(ForwardingManager):
    """counts_attempts: the metric of forwarded requests counts resends as well."""

    async def _attempt(self, message: Any, attempt: int, *others: Any) -> EnvelopeReply | None:
        if attempt > 1:
            self._redirected()
        return await super()._attempt(message, attempt, *others)


class FaultyController(kafka_bugs.ForgetfulController, recovery_bugs.HastyController):
    """A controller whose settings, APIs and Envelopes the seeded bugs change."""

    def __init__(self, settings: Settings, services: Services) -> None:
        bugs = self.bugs
        self._resent: set[str] = set()  # request ids
        self._stays_active = bool(bugs & {"never_superseded", *ZOMBIE_STORES})
        self._rewriter = EnvelopeRewriter(bugs, services.serde)
        apis = dict(services.apis)
        if "honour_client_bypass" in bugs:
            apis[ApiKey.CREATE_TOPICS] = honour_client_bypass(apis[ApiKey.CREATE_TOPICS])
        creation = apis[ApiKey.CREATE_TOPICS]
        if "ignores_validate_only" in bugs:
            faulty = _FaultyApi(creation, change_request=_without_validate_only)
            apis[ApiKey.CREATE_TOPICS] = cast(AdminApi, faulty)
        if "decides_on_old_images" in bugs:
            for changed in (ApiKey.CREATE_ACLS, ApiKey.INCREMENTAL_ALTER_CONFIGS):
                apis[changed] = cast(AdminApi, _DecidesOnOldImages(apis[changed]))
        if "rejects_the_rest" in bugs:
            apis[ApiKey.CREATE_TOPICS] = cast(AdminApi, _RejectsTheRest(creation))
        if "writes_rejected_configs" in bugs:
            apis[ApiKey.CREATE_TOPICS] = cast(AdminApi, _WritesRejectedConfigs(creation))
        if "omits_last_result" in bugs:
            faulty = _FaultyApi(creation, change_response=_without_last_result)
            apis[ApiKey.CREATE_TOPICS] = cast(AdminApi, faulty)
        if "skip_policy_on_retry" in bugs:
            for key, api in apis.items():
                apis[key] = skip_policy_on_retry(api, self._resent)
        if "answer_before_applied" in bugs:
            settings = replace(settings, waits_for_brokers=False)
        super().__init__(settings, replace(services, apis=apis))

    async def superseded(self) -> None:
        """See Controller. never_superseded: ignores that another controller was elected."""
        if not self._stays_active:
            await super().superseded()

    async def handle(self, envelope: Envelope, sender: Sender) -> EnvelopeReply:
        """See Controller."""
        if envelope.attempt > 1:
            self._resent.add(envelope.request_id)
        if "trusts_identities" in self.bugs:
            sender = _with_identity_of(envelope, sender)
        return await super().handle(self._rewriter.rewrite(envelope, sender), sender)


def _with_identity_of(envelope: Envelope, sender: Sender) -> Sender:
    """trusts_identities: treats every sender as the broker that its Envelope names."""
    trusted = copy.copy(sender)
    broker_id, incarnation, _ = envelope.identity
    cast(Any, trusted).hello = Hello(broker_id, incarnation)
    return trusted


# --- Brokers -------------------------------------------------------------------------------------


class StaleAcls(LearnedAcls):
    """stale_acl_cache: applies changes of ACLs only when it next reads all of them."""

    def acl_changed(self, pattern: ResourcePattern, entries: Entries, version: int | None) -> None:
        """See AclListener."""
        self._seen(pattern, entries, version)


class ServesExpiredSessions(SaslAuthenticator):
    """serves_expired_sessions: requests are executed after the login has expired."""

    def receive(self, frame: bytes, now_ms: int) -> LoginOutcome:
        """See SaslAuthenticator."""
        outcome = super().receive(frame, now_ms)
        return Dispatch() if isinstance(outcome, Expired) else outcome


class WritesPastTheBridge(NodeConfig):
    """writes_past_the_bridge: a broker that should forward keeps writing to ZooKeeper itself."""

    @property
    def writes_directly(self) -> bool:
        """See NodeConfig."""
        return True

    @property
    def forwards(self) -> bool:
        """See NodeConfig."""
        return self.own.forwarding_enabled


class AnswersEarly(Partition):
    """acknowledge_before_replication: a record counts as committed once the leader has it."""

    def advance_high_watermark(self) -> None:
        """See Partition."""
        if self.is_leader:
            self.set_high_watermark(self.log.end_offset)


class FirstOffsets(LastOffsets):
    """compaction_keeps_the_first_value: later values of a key are removed."""

    def put(self, digest: bytes, offset: int) -> None:
        """Keep the offset of the first record."""
        self._offsets.setdefault(digest, offset)

    def is_later(self, found: int, offset: int) -> bool:
        """Return True for every record but the first, so that compaction removes it."""
        return 0 <= found != offset


class FirstCommits(Replay):
    """loads_first_commits: a coordinator loads each partition's first commit, not its last."""

    def apply(self, record: GroupRecord, log_offset: int) -> None:
        """See Replay."""
        key = record.key
        known = self._offsets.get(key.group, {})
        if not (isinstance(key, OffsetKey) and (key.topic, key.partition) in known):
            super().apply(record, log_offset)


class AheadOfCommits(Replay):
    """loads_offsets_ahead: a coordinator loads offsets that were never committed."""

    def apply(self, record: GroupRecord, log_offset: int) -> None:
        """See Replay."""
        if isinstance(record.value, OffsetValue):
            value = replace(record.value, offset=record.value.offset + 1)
            record = GroupRecord(record.key, value)
        super().apply(record, log_offset)


class LoadingFirstCommits(GroupService):
    """loads_first_commits."""

    new_replay = FirstCommits


class LoadingAhead(GroupService):
    """loads_offsets_ahead."""

    new_replay = AheadOfCommits


class AnsweringEarly(Partitions):
    """acknowledge_before_replication."""

    new_partition = AnswersEarly


@dataclass(frozen=True, slots=True)
class AllowBeforeDeny:
    """allow_before_deny: a matching ALLOW takes precedence over a matching DENY."""

    authorizer: Authorizer

    def authorize(self, requester: Requester, action: Action, acls: Acls) -> Verdict:
        """See Authorizer."""
        verdict = self.authorizer.authorize(requester, action, _WithoutDenials(acls))
        return verdict if verdict.allowed else self.authorizer.authorize(requester, action, acls)

    def authorize_by_resource_type(
        self, requester: Requester, operation: Operation, resource_type: ResourceType, acls: Acls
    ) -> Verdict:
        """See Authorizer."""
        return self.authorizer.authorize_by_resource_type(requester, operation, resource_type, acls)


@dataclass(frozen=True, slots=True)
class _WithoutDenials:
    acls: Acls

    def matching(self, resource_type: ResourceType, name: str) -> Sequence[AccessControlEntry]:
        """See Acls."""
        found = self.acls.matching(resource_type, name)
        return [entry for entry in found if entry.permission == "ALLOW"]

    def of_type(
        self, resource_type: ResourceType
    ) -> Iterable[tuple[ResourcePattern, Sequence[AccessControlEntry]]]:
        """See Acls."""
        return self.acls.of_type(resource_type)


# --- Composition ---------------------------------------------------------------------------------

_OF_CONTROLLERS: Final = (
    "answer_before_applied",
    "broker_host",
    "decides_on_old_images",
    "drop_principal",
    "fill_in_default",
    "honour_client_bypass",
    "ignores_validate_only",
    "never_superseded",
    "omits_last_result",
    "rejects_the_rest",
    "skip_policy_on_retry",
    "swap_principals",
    "trusts_identities",
    "writes_rejected_configs",
)
_OF_BROKERS: Final = (
    "acknowledge_before_replication",
    "allow_before_deny",
    "answers_overtake",
    "registers_once",
    "repeats_updates",
    "serves_expired_sessions",
    "stale_acl_cache",
    "writes_past_the_bridge",
)
FORWARDING: Final[Mapping[str, type[ForwardingManager]]] = {
    "counts_attempts": CountsAttempts,
    **kafka_bugs.FORWARDING,
    **recovery_bugs.FORWARDING,
}
GROUPS: Final[Mapping[str, type[GroupService]]] = {
    "loads_first_commits": LoadingFirstCommits,
    "loads_offsets_ahead": LoadingAhead,
}
SEEDED_BUGS: Final = frozenset(
    {
        *(*STORES, *_OF_CONTROLLERS, *_OF_BROKERS, *GROUPS),
        *(*kafka_bugs.OF_CONTROLLERS, *recovery_bugs.OF_CONTROLLERS, *FORWARDING),
    }
)


def faulty_parts(
    config: NodeConfig,
    data_dir: Path,
    bugs: frozenset[str],
    base: Collaborators = PRODUCTION,
    extend: Callable[[Collaborators], Collaborators] = lambda faulty: faulty,
) -> Parts:
    """Build the parts of a node with these seeded bugs. `base` has the constructors without bugs.

    `extend` changes the constructors further.
    """
    if unknown := bugs - SEEDED_BUGS:
        raise ValueError(f"unknown seeded bugs: {sorted(unknown)}")
    if "allow_before_deny" in bugs and config.authorizer is not None:
        config = replace(config, authorizer=AllowBeforeDeny(config.authorizer))
    if "writes_past_the_bridge" in bugs:
        config = WritesPastTheBridge(**{f.name: getattr(config, f.name) for f in fields(config)})
    stores = tuple(store for name, store in STORES.items() if name in bugs)
    watchers = (recovery_bugs.UnregisteredWatcher,) if "registers_once" in bugs else ()
    forwarding = (each for name, each in FORWARDING.items() if name in bugs)
    faulty = replace(
        base,
        controller=type("SeededController", (FaultyController,), {"bugs": bugs}),
        store=type("FaultyStore", (*stores, cast(type[ZooKeeperStore], base.store)), {}),
        watcher=type("FaultyWatcher", (*watchers, cast(type[ZooKeeperWatcher], base.watcher)), {}),
        learned_acls=StaleAcls if "stale_acl_cache" in bugs else LearnedAcls,
        authenticator=ServesExpiredSessions
        if "serves_expired_sessions" in bugs
        else SaslAuthenticator,
        forwarding=next(forwarding, ForwardingManager),
        partitions=AnsweringEarly if "acknowledge_before_replication" in bugs else Partitions,
        groups=next((each for name, each in GROUPS.items() if name in bugs), GroupService),
        server=OvertakingServer if "answers_overtake" in bugs else base.server,
        channel=partial(channel_with_repeats, base.channel)
        if "repeats_updates" in bugs
        else base.channel,
    )
    return build_parts(config, data_dir, extend(faulty))
