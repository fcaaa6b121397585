"""CreateTopics, key 19, versions 0 to 7 (kafka-semantics 3.3). KIP-4 §CreateTopicsRequest.

Behaviour: every topic stands alone; a name that comes twice is refused in every copy. An
accepted topic gets its config znode, its topic znode and its partitions' states in one multi
where they fit. The answer waits until every partition has a leader, or the timeout passes.

Drafted (KIP-4): the right to create is that on the cluster alone; a name that comes twice is
answered once; the broker's defaults stand in for neither number alone. KIP-590: a broker has an
internal topic created past the policy; a client that says so is not heard.

Version notes:
    1: validate_only, error messages. 5: the answer shows what was created. 7: topic ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, ClassVar, Final

from bridgehead.kafka_wire.error_responses import error_response
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from bridgehead.kafka_wire.messages.drafted import create_topics as drafted
from cluster_model.authorization import CLUSTER_NAME
from cluster_model.broker_configs import BrokerConfig
from cluster_model.elections import elect_new
from cluster_model.image import MetadataImage
from cluster_model.placement import BrokerOrder, MixedRacksError, assign_replicas
from cluster_model.quirks import UNUSABLE_ASSIGNMENT_ACCEPTED, quirks_of
from cluster_model.records import PartitionRecord, Record, Replicas, TopicRecord
from cluster_model.topic_names import (
    CLUSTER_METADATA_TOPIC,
    INTERNAL_TOPICS,
    check_topic_name,
    collision_key,
    may_collide,
)
from controller.apis.base import (
    Decided,
    Decision,
    Outcome,
    RandomSource,
    RequestContext,
    Wait,
    WaitFor,
)
from controller.apis.topic_assignments import (
    PARTITIONS_IN_ONE_MULTI,
    check_room,
    given_assignment,
    partitions_max,
    too_many_partitions,
    usable_assignment,
)
from controller.policy_questions import MakeQuestion, creation

DEFAULT: Final = -1
_SHOWS_CONFIGS_FROM: Final = 5
# From here on a client may leave both numbers to the broker, which no draft speaks of (KIP-464).
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
_CLUSTER_NOT_AUTHORIZED: Final = Outcome(
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED.default_text
)
# Refused before the topic is looked at: alone these say whether its configs may be described.
_REFUSED_AT_ONCE: Final = (_FOUND_TWICE, _PROHIBITED, _NOT_AUTHORIZED, _CLUSTER_NOT_AUTHORIZED)


@dataclass(frozen=True, slots=True)
class _Plan:
    """A topic that passed every check."""

    assignment: tuple[Replicas, ...]
    configs: Mapping[str, str]
    generated: bool  # the replicas were placed here, not by the client


ConfigCheck = Callable[[Mapping[str, str]], None]
ShowConfigs = Callable[[Mapping[str, str]], list[CreatableTopicConfigs]]


def new_topic_id(random: RandomSource) -> bytes:
    """Draw a topic id that Kafka would draw: not reserved, its text not beginning with a dash."""
    while True:
        drawn = bytearray(random.randbytes(_ID_BYTES))
        drawn[6] = drawn[6] & 0x0F | 0x40  # A version 4 UUID, as Java's randomUUID makes.
        drawn[8] = drawn[8] & 0x3F | 0x80
        if bytes(drawn) not in _RESERVED_IDS and drawn[0] & 0xFC != _FIRST_BASE64_IS_DASH:
            return bytes(drawn)


class CreateTopics:
    """See the module."""

    api_key: ClassVar[int] = 19

    def __init__(
        self,
        config: BrokerConfig,
        *,
        check_configs: ConfigCheck,
        show_configs: ShowConfigs,
        honours_client_bypass: bool = False,
    ) -> None:
        """`check_configs` raises ApiError INVALID_CONFIG; `show_configs` fills v5 answers.

        `honours_client_bypass` is a seeded bug.
        """
        self._honours_client_bypass = honours_client_bypass
        self._default_partitions = config.int("num.partitions")
        self._default_factor = config.int("default.replication.factor")
        self._takes_unusable = UNUSABLE_ASSIGNMENT_ACCEPTED in quirks_of(config.originals)
        self._check_configs = check_configs
        self._show_configs = show_configs

    def decide(
        self,
        context: RequestContext,
        request: CreateTopicsRequest,
        image: MetadataImage,
        settled: Mapping[str, Outcome],
    ) -> Decision:
        """See AdminApi.decide."""
        counts = Counter(topic.name for topic in request.topics)
        may_create_all = context.authorize("CREATE", "CLUSTER", CLUSTER_NAME, log_if_denied=False)
        order = _order(image)
        elements: list[Decided] = []
        created: dict[str, str] = {}  # collision key -> name, of this request
        for topic in request.topics:
            name = topic.name
            if name in settled:
                continue
            refusal = self._refuse_at_once(context, name, counts[name], may_create_all)
            if refusal is not None:
                elements.append(Decided(name, refusal))
                continue
            try:
                plan = self._plan(context, topic, image, order, created)
            except ApiError as refused:
                elements.append(Decided(name, Outcome(refused.error, refused.message)))
                continue
            if may_collide(name):
                created[collision_key(name)] = name
            judged = self._question(context, request, name, plan)
            if request.validate_only:
                elements.append(Decided(name, Outcome(ErrorCode.NONE), question=judged))
            else:
                elements.append(self._create(context, name, plan, image, judged))
        names = {topic.name: topic.name for topic in request.topics}
        waits = WaitFor.NOTHING if request.validate_only else WaitFor.LEADERS
        return Decision(elements, Wait(waits, names, request.timeout_ms))

    def _question(
        self, context: RequestContext, request: CreateTopicsRequest, name: str, plan: _Plan
    ) -> MakeQuestion | None:
        """Return what a policy is asked; None: it is passed by (KIP-590's flag)."""
        flagged = isinstance(request, drafted.CreateTopicsRequest) and request.bypass_policy
        from_broker = context.made_by_broker and name in INTERNAL_TOPICS
        if flagged and (from_broker or self._honours_client_bypass):
            return None
        return partial(
            creation, context.principal, name, plan.assignment, plan.configs, plan.generated
        )

    def _refuse_at_once(
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
    ) -> _Plan:
        """Every check of kafka-semantics 3.3 in its order; the first failure wins."""
        name = topic.name
        if name in image.topics and name not in image.deletions:
            raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        nulls = [config.name for config in topic.configs if config.value is None]
        if nulls:
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                f"Null value not supported for topic configs: {','.join(nulls)}",
            )
        # Where a key comes twice the last one counts, as in Kafka.
        configs = {config.name: config.value or "" for config in topic.configs}
        if topic.assignments:
            self._refuse_both(topic)
            self._check_name(name, image, created)
            given = given_assignment(topic)
            self._check_configs(configs)
            assignment = usable_assignment(given, image, unusable_too=self._takes_unusable)
        else:
            assignment = self._place(context, topic, order, len(image.brokers))
            self._check_name(name, image, created)
            self._check_configs(configs)
        check_room(name, assignment, configs)
        return _Plan(assignment, configs, generated=not topic.assignments)

    def _refuse_both(self, topic: CreatableTopic) -> None:
        if topic.num_partitions != DEFAULT or topic.replication_factor != DEFAULT:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "Both numPartitions or replicationFactor and replicasAssignments were set. "
                "Both cannot be used at the same time.",
            )

    def _place(
        self, context: RequestContext, topic: CreatableTopic, order: BrokerOrder | None, count: int
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
        # Before anything is made of it: the number may be two billion.
        if partitions > partitions_max(factor):
            raise too_many_partitions(partitions)
        if order is None:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)  # Some brokers have a rack, some none.
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
        judged: MakeQuestion | None,
    ) -> Decided:
        topic_id = new_topic_id(context.random)
        topic = TopicRecord(name, topic_id, plan.assignment, plan.configs)
        states: list[Record] = []
        for partition, replicas in enumerate(plan.assignment):
            state = elect_new(replicas, image.brokers, image.controller_epoch)
            if state is not None:
                states.append(PartitionRecord(name, partition, state))
        outcome = Outcome(ErrorCode.NONE, topic_id=topic_id)
        partitions = len(plan.assignment)
        if len(states) <= PARTITIONS_IN_ONE_MULTI:
            return Decided(name, outcome, (topic, *states), (), partitions, judged)
        return Decided(name, outcome, (topic,), tuple(states), partitions, judged)

    def conflict(self, element: str) -> Outcome:
        """Somebody wrote the topic's znodes by hand."""
        return Outcome(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{element}' already exists.")

    def answer(
        self,
        context: RequestContext,
        request: CreateTopicsRequest,
        outcomes: Mapping[str, Outcome],
        image: MetadataImage,
        unfinished: frozenset[str],
    ) -> CreateTopicsResponse:
        """See AdminApi.answer."""
        return CreateTopicsResponse(
            topics=[
                self._result(context, topic, outcomes[topic.name], topic.name in unfinished)
                for topic in _answered(context, request)
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
        asks = outcome.succeeded or outcome in _REFUSED_AT_ONCE
        if asks and not context.authorize(
            "DESCRIBE_CONFIGS", "TOPIC", topic.name, log_if_denied=False
        ):
            if not late:
                result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            return result
        # A topic that was created but has no leaders yet says its id beside the error.
        if outcome.topic_id is not None:
            result.topic_id = outcome.topic_id
        if late or not outcome.succeeded:
            return result
        if topic.assignments:
            result.num_partitions = len({a.partition_index for a in topic.assignments})
            result.replication_factor = len(topic.assignments[0].broker_ids)
        else:
            result.num_partitions, result.replication_factor = self._sizes(context, topic)
        result.configs = self._show_configs({c.name: c.value or "" for c in topic.configs})
        return result

    def refuse(
        self, request: CreateTopicsRequest, version: int, error: ErrorCode, message: str | None
    ) -> Any:
        """See AdminApi.refuse."""
        return error_response(self.api_key, request, version, error, message)


def _answered(context: RequestContext, request: CreateTopicsRequest) -> Iterable[CreatableTopic]:
    """Yield the topics in the answer: KIP-4's is a map, so a name stands there once."""
    if context.is_drafted:
        return {topic.name: topic for topic in request.topics}.values()
    return request.topics


def _order(image: MetadataImage) -> BrokerOrder | None:
    """The live brokers for placement; None where only some of them have a rack."""
    return _order_of(tuple((i, broker.rack) for i, broker in image.brokers.items()))


@lru_cache(maxsize=4)  # The same brokers for very many requests.
def _order_of(racks: tuple[tuple[int, str | None], ...]) -> BrokerOrder | None:
    try:
        return BrokerOrder.of(dict(racks))
    except MixedRacksError:
        return None
