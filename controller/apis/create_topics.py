"""CreateTopics, key 19, versions 0 to 7 (docs/kafka/topics.md). KIP-4 §CreateTopicsRequest.

Topics are independent; every entry of a duplicate topic is rejected. An accepted topic's config
znode, topic znode and partition states are written in one multi if they fit. The response waits
until every partition has a leader, or until the timeout.

The drafted dialect (KIP-4, KIP-590) differs: the client needs CREATE on Cluster; the response lists
a duplicate topic once; the default partition count and replication factor apply only if the request
sets neither of them; a broker that creates an internal topic may bypass the policy with a flag of
the request, and a client may not.

Version notes:
    1: validate_only, error messages. 5: the response has the created topic's partition count,
    replication factor and configs. 7: topic ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import ClassVar, Final, Self

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from bridgehead.kafka_wire.messages.drafted import create_topics as drafted
from cluster_model.acls.authorization import CLUSTER_NAME
from cluster_model.configs.broker_configs import BrokerConfig
from cluster_model.image import MetadataImage
from cluster_model.partitions.placement import BrokerOrder, MixedRacksError, assign_replicas
from cluster_model.quirks import UNUSABLE_ASSIGNMENT_ACCEPTED, quirks_of
from cluster_model.records import Replicas, TopicRecord
from cluster_model.scala_order import mutable_hash_order
from cluster_model.topic_names import (
    CLUSTER_METADATA_TOPIC,
    INTERNAL_TOPICS,
    check_topic_name,
    collision_key,
    may_collide,
)
from controller.apis.base import (
    DONE,
    AdminApi,
    ApiSettings,
    Decided,
    Decision,
    Outcome,
    RandomSource,
    RequestContext,
    Results,
    Wait,
    WaitFor,
)
from controller.apis.policy_check import MakePolicyCheck, creation
from controller.apis.topic_assignments import (
    PARTITIONS_IN_ONE_MULTI,
    check_partitions_of_request,
    check_room,
    given_assignment,
    new_states,
    partitions_max,
    too_many_partitions,
    usable_assignment,
)
from controller.apis.topic_config_rules import TopicConfigRules

DEFAULT: Final = -1
_SHOWS_CONFIGS_FROM: Final = 5
# From this version on, a topic may omit both the partition count and the replication factor in the
# drafted dialect (KIP-464). In the shipped dialect it may omit either, in every version.
_DEFAULTS_FROM: Final = 4
_ID_BYTES: Final = 16
_RESERVED_IDS: Final = frozenset({bytes(16), bytes(15) + b"\x01"})
_FIRST_BASE64_IS_DASH: Final = 62 << 2


_FOUND_TWICE: Final = Outcome(ErrorCode.INVALID_REQUEST, "Found multiple entries for this topic.")
_PROHIBITED: Final = Outcome(
    ErrorCode.INVALID_REQUEST,
    f"Creation of internal topic {CLUSTER_METADATA_TOPIC} is prohibited.",
)
_NOT_AUTHORIZED: Final = Outcome(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
_CLUSTER_NOT_AUTHORIZED: Final = Outcome.with_default_text(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
# A result with one of these rejections has a topic config error code as well, if the client lacks
# DESCRIBE_CONFIGS. Results with other rejections never have one.
_EARLY_REJECTIONS: Final = (_FOUND_TWICE, _NOT_AUTHORIZED, _CLUSTER_NOT_AUTHORIZED)


@dataclass(frozen=True, slots=True)
class _Plan:
    """A topic that passed every check."""

    assignment: tuple[Replicas, ...]
    configs: Mapping[str, str]
    generated: bool  # placed by the controller, not assigned by the client


ConfigCheck = Callable[[Mapping[str, str]], None]
ShowConfigs = Callable[[Mapping[str, str]], list[CreatableTopicConfigs]]


def new_topic_id(random: RandomSource) -> bytes:
    """Return a random id that is not reserved and whose text has no leading dash, as in Kafka."""
    while True:
        drawn = bytearray(random.randbytes(_ID_BYTES))
        drawn[6] = drawn[6] & 0x0F | 0x40  # A version 4 UUID.
        drawn[8] = drawn[8] & 0x3F | 0x80
        if bytes(drawn) not in _RESERVED_IDS and drawn[0] & 0xFC != _FIRST_BASE64_IS_DASH:
            return bytes(drawn)


class CreateTopics(AdminApi):
    """Decides CreateTopics requests."""

    api_key: ClassVar[ApiKey] = ApiKey.CREATE_TOPICS

    @classmethod
    def build(cls, settings: ApiSettings) -> Self:
        rules = TopicConfigRules(settings.current)
        return cls(settings.config, check_configs=rules.check, show_configs=rules.show)

    def __init__(
        self,
        config: BrokerConfig,
        *,
        check_configs: ConfigCheck,
        show_configs: ShowConfigs,
    ) -> None:
        """`check_configs` raises INVALID_CONFIG. Responses from version 5 on use `show_configs`."""
        self._default_partitions = config.int("num.partitions")
        self._default_factor = config.int("default.replication.factor")
        self._accepts_unusable = UNUSABLE_ASSIGNMENT_ACCEPTED in quirks_of(config.originals)
        self._check_configs = check_configs
        self._show_configs = show_configs

    def decide(
        self,
        context: RequestContext,
        request: CreateTopicsRequest,
        image: MetadataImage,
        committed: Mapping[str, Outcome],
    ) -> Decision:
        counts = Counter(topic.name for topic in request.topics)
        may_create_all = context.authorize("CREATE", "CLUSTER", CLUSTER_NAME, log_if_denied=False)
        order = _order(image)
        elements: list[Decided] = []
        created: dict[str, str] = {}  # by collision key: the names in this request
        partitions = 0  # of all topics that passed their checks
        for topic in _in_order(request.topics):
            name = topic.name
            if name in committed:
                continue
            rejection = self._early_rejection(context, name, counts[name], may_create_all)
            if rejection is not None:
                elements.append(Decided(name, rejection))
                continue
            try:
                plan = self._plan(context, topic, image, order, created, partitions)
            except ApiError as error:
                elements.append(Decided(name, Outcome.of(error)))
                continue
            partitions += len(plan.assignment)
            if may_collide(name) and not request.validate_only:
                created[collision_key(name)] = name
            check = self._policy_check(context, request, name, plan)
            if request.validate_only:
                elements.append(Decided(name, DONE, policy_check=check))
            else:
                elements.append(self._create(context, name, plan, image, check))
        names = {topic.name: topic.name for topic in request.topics}
        waits = WaitFor.NOTHING if request.validate_only else WaitFor.LEADERS
        return Decision(elements, Wait(waits, names, request.timeout_ms))

    def _policy_check(
        self, context: RequestContext, request: CreateTopicsRequest, name: str, plan: _Plan
    ) -> MakePolicyCheck | None:
        """Return the policy check, or None if it is bypassed (KIP-590's flag)."""
        flagged = isinstance(request, drafted.CreateTopicsRequest) and request.bypass_policy
        from_broker = context.made_by_broker and name in INTERNAL_TOPICS
        if flagged and from_broker:
            return None
        return partial(
            creation, context.client.principal, name, plan.assignment, plan.configs, plan.generated
        )

    def _early_rejection(
        self, context: RequestContext, name: str, count: int, may_create_all: bool
    ) -> Outcome | None:
        if name == CLUSTER_METADATA_TOPIC:
            return _PROHIBITED
        if count > 1:
            return _FOUND_TWICE
        if not may_create_all and context.is_drafted:
            return _CLUSTER_NOT_AUTHORIZED
        if not may_create_all and not context.authorize("CREATE", "TOPIC", name, count=count):
            return _NOT_AUTHORIZED
        return None

    def _plan(
        self,
        context: RequestContext,
        topic: CreatableTopic,
        image: MetadataImage,
        order: BrokerOrder | None,
        created: Mapping[str, str],
        partitions: int,
    ) -> _Plan:
        """Check a topic in the order of docs/kafka/topics.md#createtopics; raises ApiError.

        `partitions`: how many the request has added so far.
        """
        name = topic.name
        if name in image.topics and name not in image.deletions:
            raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        nulls = [config.name for config in topic.configs if config.value is None]
        if nulls:
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                f"Null value not supported for topic configs: {','.join(nulls)}",
            )
        # The last entry of a key wins, as in Kafka.
        configs = {config.name: config.value or "" for config in topic.configs}
        if topic.assignments:
            self._reject_both(topic)
            self._check_name(name, image, created)
            requested_assignment = given_assignment(topic)
            self._check_configs(configs)
            assignment = usable_assignment(
                requested_assignment, image, unusable_too=self._accepts_unusable
            )
        else:
            assignment = self._place(context, topic, order, len(image.brokers), partitions)
            self._check_name(name, image, created)
            self._check_configs(configs)
        check_room(name, assignment, configs)
        return _Plan(assignment, configs, generated=not topic.assignments)

    def _reject_both(self, topic: CreatableTopic) -> None:
        if topic.num_partitions != DEFAULT or topic.replication_factor != DEFAULT:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "Both numPartitions or replicationFactor and replicasAssignments were set. "
                "Both cannot be used at the same time.",
            )

    def _place(
        self,
        context: RequestContext,
        topic: CreatableTopic,
        order: BrokerOrder | None,
        count: int,
        added: int,
    ) -> tuple[Replicas, ...]:
        partitions, factor = self._sizes(context, topic)
        if partitions <= 0:
            raise ApiError(
                ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0."
            )
        if factor <= 0:
            raise ApiError(
                ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0."
            )
        if factor > count:
            raise ApiError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"Replication factor: {factor} larger than available brokers: {count}.",
            )
        # Checked before partitions are placed, because the request may ask for two billion.
        if partitions > partitions_max(factor):
            raise too_many_partitions(partitions)
        check_partitions_of_request(added + partitions)
        if order is None:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)  # Only some brokers have a rack.
        return assign_replicas(
            order,
            partitions=partitions,
            replication_factor=factor,
            start=context.random.randrange(count),
            shift=context.random.randrange(count),
        )

    def _sizes(self, context: RequestContext, topic: CreatableTopic) -> tuple[int, int]:
        partitions, factor = topic.num_partitions, topic.replication_factor
        leaves_both = partitions == factor == DEFAULT and context.api_version >= _DEFAULTS_FROM
        if context.is_drafted and not leaves_both:
            return partitions, factor
        return (
            self._default_partitions if partitions == DEFAULT else partitions,
            self._default_factor if factor == DEFAULT else factor,
        )

    def _check_name(self, name: str, image: MetadataImage, created: Mapping[str, str]) -> None:
        check_topic_name(name)
        if name in image.deletions:
            raise ApiError(
                ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' is marked for deletion."
            )
        if not may_collide(name):
            return
        key = collision_key(name)
        others = sorted(image.colliding.get(key, frozenset()) - {name})
        if key in created:
            others.append(created[key])
        if others:
            raise ApiError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic '{name}' collides with existing topics: {', '.join(others)}",
            )

    def _create(
        self,
        context: RequestContext,
        name: str,
        plan: _Plan,
        image: MetadataImage,
        check: MakePolicyCheck | None,
    ) -> Decided:
        topic_id = new_topic_id(context.random)
        topic = TopicRecord(name, topic_id, plan.assignment, plan.configs)
        states = new_states(name, enumerate(plan.assignment), image)
        outcome = Outcome(ErrorCode.NONE, topic_id=topic_id)
        partitions = len(plan.assignment)
        if len(states) <= PARTITIONS_IN_ONE_MULTI:
            return Decided(name, outcome, (topic, *states), (), partitions, check)
        return Decided(name, outcome, (topic,), tuple(states), partitions, check)

    def conflict(self, element: str) -> Outcome:
        """See AdminApi.conflict: the topic's znodes exist."""
        return Outcome(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{element}' already exists.")

    def response(
        self, context: RequestContext, request: CreateTopicsRequest, results: Results
    ) -> CreateTopicsResponse:
        return CreateTopicsResponse(
            topics=[
                self._result(
                    context, topic, results.outcomes[topic.name], topic.name in results.unfinished
                )
                for topic in _rows(context, request)
            ]
        )

    def _result(
        self, context: RequestContext, topic: CreatableTopic, outcome: Outcome, late: bool
    ) -> CreatableTopicResult:
        result = CreatableTopicResult(
            name=topic.name, error_code=outcome.error, error_message=outcome.message, configs=[]
        )
        if late:
            result.error_code = ErrorCode.REQUEST_TIMED_OUT
        if context.api_version < _SHOWS_CONFIGS_FROM:
            return result
        reports = outcome.succeeded or outcome in _EARLY_REJECTIONS
        if reports and not context.authorize(
            "DESCRIBE_CONFIGS", "TOPIC", topic.name, log_if_denied=False
        ):
            if not late:
                result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            return result
        # If the creation of a topic timed out, the result has both the id and the error.
        if outcome.topic_id is not None:
            result.topic_id = outcome.topic_id
        if late or not outcome.succeeded:
            return result
        if topic.assignments:
            replicas = {a.partition_index: a.broker_ids for a in topic.assignments}
            result.num_partitions = len(replicas)
            result.replication_factor = len(replicas[0])
        else:
            result.num_partitions, result.replication_factor = self._sizes(context, topic)
        result.configs = self._show_configs({c.name: c.value or "" for c in topic.configs})
        return result


def _in_order(topics: Sequence[CreatableTopic]) -> Sequence[CreatableTopic]:
    """Return the topics in the order of the request.

    If names collide, the order is that of Kafka's hash table instead, because only the first topic
    of those that collide is created.
    """
    names = {topic.name for topic in topics if may_collide(topic.name)}
    if len(set(map(collision_key, names))) == len(names):
        return topics
    order = {name: at for at, name in enumerate(mutable_hash_order(t.name for t in topics))}
    return sorted(topics, key=lambda topic: order[topic.name])


def _rows(context: RequestContext, request: CreateTopicsRequest) -> Iterable[CreatableTopic]:
    """Return the topics of the response. In the drafted dialect each name is listed once."""
    if context.is_drafted:
        return {topic.name: topic for topic in request.topics}.values()
    return request.topics


def _order(image: MetadataImage) -> BrokerOrder | None:
    """Return the live brokers for placement; None if only some of them have a rack."""
    return _order_of(tuple((i, broker.rack) for i, broker in image.brokers.items()))


@lru_cache(maxsize=4)  # The brokers rarely change.
def _order_of(racks: tuple[tuple[int, str | None], ...]) -> BrokerOrder | None:
    try:
        return BrokerOrder.of(dict(racks))
    except MixedRacksError:
        return None
