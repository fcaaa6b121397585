"""Bugs of the decisions about requests: what is checked, on which image, and what is answered."""

from __future__ import annotations

import random
from collections.abc import Callable, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, cast

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from chaos.bugs.bug import Bug, Change, KafkaBug, Run, part, services
from cluster_model.image import MetadataImage
from cluster_model.records import ConfigRecord, ConfigResource
from controller.apis.base import AdminApi, Decided, Decision, RequestContext
from controller.controller import Controller
from controller.services import Sender, Services, Settings
from controller.store.port import Fence
from controller.store.zookeeper import ZooKeeperStore
from controller.term.term import Term
from envelope.messages import Envelope, EnvelopeReply


@dataclass(slots=True)
class _FaultyApi:
    """An API of which a subclass overrides something."""

    api: AdminApi

    def __getattr__(self, name: str) -> Any:
        return getattr(self.api, name)

    def decide(
        self, context: RequestContext, request: Any, image: MetadataImage, *others: Any
    ) -> Decision:
        return self.api.decide(context, request, image, *others)


def _apis(faulty: type[_FaultyApi], *keys: ApiKey) -> Change:
    """Return a change of the APIs with these keys."""

    def change(services: Services) -> Services:
        changed = {int(key): cast(AdminApi, faulty(services.apis[key])) for key in keys}
        return replace(services, apis={**services.apis, **changed})

    return services(change)


# --- Policies ------------------------------------------------------------------------------------


@dataclass(slots=True)
class _WithoutPolicies(_FaultyApi):
    skips: Callable[[RequestContext, Any], bool]

    def decide(self, context: RequestContext, request: Any, *others: Any) -> Decision:
        decision = self.api.decide(context, request, *others)
        if not self.skips(context, request):
            return decision
        unchecked = [replace(element, policy_check=None) for element in decision.elements]
        return replace(decision, elements=unchecked)


def without_policies(api: AdminApi, skips: Callable[[RequestContext, Any], bool]) -> AdminApi:
    """Remove the policy checks of the requests that `skips` selects."""
    return cast(AdminApi, _WithoutPolicies(api, skips))


def honour_client_bypass(create_topics: AdminApi) -> AdminApi:
    """Do not check requests of clients that have the flag for internal topics."""
    return without_policies(create_topics, lambda _, r: getattr(r, "bypass_policy", False))


def skip_policy_on_retry(api: AdminApi, resent: Set[str]) -> AdminApi:
    """Do not check the requests whose ids are in `resent`."""
    return without_policies(api, lambda context, _: context.request_id in resent)


def _with_client_bypass(services: Services) -> Services:
    faulty = honour_client_bypass(services.apis[ApiKey.CREATE_TOPICS])
    return replace(services, apis={**services.apis, ApiKey.CREATE_TOPICS: faulty})


class _SkipsPolicyOnRetry(Controller):
    def __init__(self, settings: Settings, services: Services) -> None:
        self._resent: set[str] = set()  # request ids
        skip = partial(skip_policy_on_retry, resent=self._resent)
        apis = {key: skip(api) for key, api in services.apis.items()}
        super().__init__(settings, replace(services, apis=apis))

    async def handle(self, envelope: Envelope, sender: Sender) -> EnvelopeReply:
        if envelope.attempt > 1:
            self._resent.add(envelope.request_id)
        return await super().handle(envelope, sender)


# --- Decisions and responses ---------------------------------------------------------------------


class _IgnoresValidateOnly(_FaultyApi):
    def decide(self, context: RequestContext, request: Any, *others: Any) -> Decision:
        return self.api.decide(context, replace(request, validate_only=False), *others)


class _OmitsLastResult(_FaultyApi):
    def response(self, *arguments: Any) -> Any:
        response: Any = self.api.response(*arguments)
        return replace(response, topics=response.topics[:-1]) if response.topics[1:] else response


class _DecidesOnOldImages(_FaultyApi):
    newest: MetadataImage | None = None

    def decide(
        self, context: RequestContext, request: Any, image: MetadataImage, *others: Any
    ) -> Decision:
        older, self.newest = self.newest or image, image
        return self.api.decide(context, request, older, *others)


class _RejectsTheRest(_FaultyApi):
    def decide(self, context: RequestContext, request: Any, *others: Any) -> Decision:
        decision = self.api.decide(context, request, *others)
        elements, rejection = [], None
        for element in decision.elements:
            if rejection is None and not element.outcome.succeeded:
                rejection = element.outcome
            elements.append(element if rejection is None else Decided(element.element, rejection))
        return replace(decision, elements=elements)


class _WritesRejectedConfigs(_FaultyApi):
    def decide(self, context: RequestContext, request: Any, *others: Any) -> Decision:
        decision = self.api.decide(context, request, *others)
        configs = {
            topic.name: ConfigRecord(
                ConfigResource("topics", topic.name),
                {config.name: config.value for config in topic.configs},
            )
            for topic in request.topics
        }
        elements = [
            replace(element, records=(configs[element.element],))
            if element.outcome.error is ErrorCode.TOPIC_ALREADY_EXISTS
            else element
            for element in decision.elements
        ]
        return replace(decision, elements=elements)


class _RepeatsTopicIds(Controller):
    def __init__(self, settings: Settings, services: Services) -> None:
        self._source = random.Random(0)
        super().__init__(settings, replace(services, random=self._source))

    async def _load(self, store: ZooKeeperStore, fence: Fence, elected_ms: float) -> Term:
        self._source.seed(0)
        return await super()._load(store, fence, elected_ms)


BUGS: Final[tuple[Bug, ...]] = (
    Bug(
        name="honour_client_bypass",
        does="A client bypasses the policy with the flag for internal topics.",
        apply=services(_with_client_bypass),
        found_by="the client's result",
        test="integration/test_policies.py"
        "::test_a_clients_bypass_flag_has_an_effect_only_with_the_seeded_bug",
    ),
    Bug(
        name="skip_policy_on_retry",
        does="The policy does not check a request that is resent.",
        apply=part("controller", _SkipsPolicyOnRetry),
        found_by="the client's result",
        test="unit/controller/test_policy_evaluation.py::test_a_resend_is_checked_again",
    ),
    Bug(
        name="ignores_validate_only",
        does="A request that should only be validated is executed.",
        apply=_apis(_IgnoresValidateOnly, ApiKey.CREATE_TOPICS),
        found_by="D9",
        run=Run(scenario="controller_killed", found_by=("D9",)),
    ),
    Bug(
        name="omits_last_result",
        does="The last of several topics of a request has no result.",
        apply=_apis(_OmitsLastResult, ApiKey.CREATE_TOPICS),
        found_by="D7",
    ),
    Bug(
        name="decides_on_old_images",
        does="A change is decided on an image without the change before it.",
        apply=_apis(_DecidesOnOldImages, ApiKey.CREATE_ACLS, ApiKey.INCREMENTAL_ALTER_CONFIGS),
        found_by="the clients' comparison of configs and ACLs",
    ),
    Bug(
        name="rejects_the_rest",
        does="After a rejected element, all further elements of a request get its error.",
        apply=_apis(_RejectsTheRest, ApiKey.CREATE_TOPICS),
        found_by="the clients' results",
    ),
    Bug(
        name="writes_rejected_configs",
        does="A rejected CreateTopics writes its configs to the existing topic.",
        apply=_apis(_WritesRejectedConfigs, ApiKey.CREATE_TOPICS),
        found_by="the clients' comparison of configs",
    ),
    KafkaBug(
        name="repeats_topic_ids",
        does="Each controller starts with the same sequence of topic ids.",
        apply=part("controller", _RepeatsTopicIds),
        found_by="D10",
        issue="KAFKA-12835",
        happened="Brokers had different ids for one topic. The faulty part differs: each new "
        "controller starts with the same sequence of ids, so several topics have the same id.",
        run=Run(scenario="sessions_flap", found_by=("D10",)),
    ),
)
