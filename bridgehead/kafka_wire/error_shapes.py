"""How a response reports an error that fails the whole request: one shape per API.

The table in `apis` builds the shapes with two functions. `whole` returns the shape of a response
with one code. `per` returns the shape of a response with a code for each element of the request.
Fields that a shape does not name keep the default of the schema, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.java_order import (
    NAMES_MAX,
    hash_map_order,
    java_hash,
    topic_partition_hash,
)
from bridgehead.kafka_wire.schema import Array, Wire, fields_of


@dataclass(frozen=True, slots=True)
class Failure:
    """The error of a whole request. `version` is the version of the request."""

    version: int
    error: ErrorCode
    message: str | None

    @property
    def is_not_controller(self) -> bool:
        """True for NOT_CONTROLLER, which some of Kafka's handlers report in a way of their own."""
        return self.error is ErrorCode.NOT_CONTROLLER


# Takes the response class, the request and the failure, and returns the response. Returns None if
# this version of the response has no field for an error of the whole request.
ErrorShape = Callable[[type[Any], Any, Failure], Any]
# Returns the error message that Kafka sends for a failure.
Text = Callable[[Failure], str | None]
# Returns the elements of a request: structs, names or numbers.
Elements = Callable[[Any], Iterable[Any]]


def given_text(failure: Failure) -> str | None:
    """Return the message of the failure."""
    return failure.message


def default_text(failure: Failure) -> str:
    """Return the default message of the error code."""
    return failure.error.default_text


def no_text(_failure: Failure) -> None:
    """Return None: the response has no message."""


def default_when_not_controller(failure: Failure) -> str | None:
    """Return the message of the failure; for NOT_CONTROLLER return the default message."""
    return failure.error.default_text if failure.is_not_controller else failure.message


def empty_when_not_controller(failure: Failure) -> str | None:
    """Return the message of the failure; for NOT_CONTROLLER, as in Kafka, the schema's default."""
    return "" if failure.is_not_controller else failure.message


def whole(text: Text = given_text, **constants: Any) -> ErrorShape:
    """Return the shape of a response with a single code. `constants` replace schema defaults."""
    return lambda response, _request, failure: _struct(response, failure, text, constants)


@dataclass(frozen=True, slots=True)
class Per:
    """A response with one element in its list `into` for each element of the request.

    Every struct of the response gets the error code and the message, if it has fields for them.
    """

    elements: Elements
    copied: Mapping[str, str]  # the source of each field: its name in the request's element
    into: str
    nested: Per | None
    text: Text
    constants: Mapping[str, Any]

    def __call__(self, response: type[Any], request: Any, failure: Failure) -> Any:
        """Return the response; see ErrorShape."""
        results = {self.into: self._results(response, request, failure, self.text)}
        return _struct(response, failure, self.text, results)

    def _results(
        self, parent: type[Any], requested: Any, failure: Failure, text: Text
    ) -> list[Any]:
        kind = _fields(parent)[self.into].type
        assert isinstance(kind, Array)
        assert isinstance(kind.of, type)
        results = []
        for element in self.elements(requested):
            is_struct = not isinstance(element, str | int)
            values = dict(self.constants)
            for field, source in self.copied.items():
                values[field] = getattr(element, source) if is_struct else element
            if self.nested is not None:
                values[self.nested.into] = self.nested._results(kind.of, element, failure, text)
            results.append(_struct(kind.of, failure, text, values))
        return results


def per(
    elements: str | Elements,
    copied: str = "",
    *,
    into: str = "",
    nested: Per | None = None,
    text: Text = given_text,
    **constants: Any,
) -> Per:
    """Build a `Per`.

    Args:
        elements: the request's list, by its name or by a function of the request.
        copied: fields that are copied from the request's element, separated by spaces; "a=b" if
            the field is `a` in the response and `b` in the request. An element that is a name or a
            number is copied to the only field.
        into: the response's list, if its name is not the name of the request's list.
        nested: the shape of a list within each element.
        text: the error message.
        constants: values that fields of the response's element have instead of the schema's
            defaults.
    """
    pairs = (word.partition("=") for word in copied.split())
    fields = {field: source or field for field, _, source in pairs}
    if not isinstance(elements, str):
        return Per(elements, fields, into, nested, text, constants)
    requested = lambda request: getattr(request, elements) or ()  # noqa: E731
    return Per(requested, fields, into or elements, nested, text, constants)


def since(version: int, shape: ErrorShape, before: ErrorShape | None = None) -> ErrorShape:
    """Return a shape that uses `shape` from `version` on, and `before` for older versions."""

    def build(response: type[Any], request: Any, failure: Failure) -> Any:
        chosen = shape if failure.version >= version else before
        return chosen(response, request, failure) if chosen is not None else None

    return build


def not_controller_as_whole(shape: ErrorShape) -> ErrorShape:
    """Return `shape`, except that for NOT_CONTROLLER the response has one code and no elements."""
    as_whole = whole(default_text)
    return lambda response, request, failure: (as_whole if failure.is_not_controller else shape)(
        response, request, failure
    )


def not_controller_in_elements(shape: ErrorShape) -> ErrorShape:
    """Return `shape`, except that NOT_CONTROLLER is only in the elements, not at the top level."""

    def build(response: type[Any], request: Any, failure: Failure) -> Any:
        filled = shape(response, request, failure)
        if failure.is_not_controller:
            filled.error_code = ErrorCode.NONE
        return filled

    return build


_TABLES: dict[type[Any], Mapping[str, Wire]] = {}


def _fields(struct: type[Any]) -> Mapping[str, Wire]:
    if struct not in _TABLES:
        _TABLES[struct] = {field.name: field for field in fields_of(struct)}
    return _TABLES[struct]


def _struct(target: type[Any], failure: Failure, text: Text, values: Mapping[str, Any]) -> Any:
    common: dict[str, Any] = {}
    if "error_code" in _fields(target):
        common["error_code"] = failure.error
    if "error_message" in _fields(target):
        common["error_message"] = text(failure)
    return target(**common, **values)


# For some requests, `per` needs a function that returns the elements, not only the name of a list.
# These functions follow.


def metadata_topics(request: Any) -> Iterable[Any]:
    """Return the topics; a topic that is requested by id has the name ""."""
    return [replace(topic, name=topic.name or "") for topic in request.topics or ()]


def moved_topics(request: Any) -> Iterable[Any]:
    """Return the topics of each directory in AlterReplicaLogDirs, with duplicates."""
    return [topic for directory in request.dirs for topic in directory.topics]


def scram_users(request: Any) -> Iterable[str]:
    """Return the users of AlterUserScramCredentials, sorted and each once."""
    return sorted({change.name for change in (*request.deletions, *request.upsertions)})


def altered_topics(request: Any) -> Iterable[str]:
    """Return the topics of the drafted AlterTopics, each once."""
    return dict.fromkeys(topic.topic for topic in request.topics)


def fetched_groups(request: Any) -> Iterable[str]:
    """Return the groups of OffsetFetch 8+, each once, in the order of Kafka's hash table.

    With more than NAMES_MAX groups, the order is the request's.
    """
    distinct = list(dict.fromkeys(group.group_id for group in request.groups))
    if len(distinct) > NAMES_MAX:
        return distinct
    hashes = {group_id: java_hash(group_id) for group_id in distinct}
    return hash_map_order(hashes, capacity=len(request.groups))


class FetchedTopic(NamedTuple):
    """A topic of OffsetFetch and its partitions, each once."""

    name: str
    partitions: list[int]


def fetched_topics(request: Any) -> Iterable[FetchedTopic]:
    """Return the topics of OffsetFetch 0 and 1 as Kafka's two hash tables order them.

    Kafka puts every partition into the first table. In that table's order it puts the topics into
    the second one. With more than NAMES_MAX topics, the order is the request's.
    """
    requested: dict[str, dict[int, None]] = {}
    for topic in request.topics or ():
        requested.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
    if len(requested) > NAMES_MAX:
        return [
            FetchedTopic(name, list(partitions))
            for name, partitions in requested.items()
            if partitions
        ]
    hashes = {name: java_hash(name) for name in requested}
    partition_hashes = {
        (name, partition): topic_partition_hash(hashes[name], partition)
        for name, partitions in requested.items()
        for partition in partitions
    }
    by_topic: dict[str, list[int]] = {}
    for name, partition in hash_map_order(partition_hashes):
        by_topic.setdefault(name, []).append(partition)
    names = hash_map_order({name: hashes[name] for name in by_topic})
    return [FetchedTopic(name, by_topic[name]) for name in names]


def unless_no_acks(shape: ErrorShape) -> ErrorShape:
    """Return `shape`, except that Produce with acks=0 gets no response: its producer reads none."""

    def shaped(response: type[Any], request: Any, failure: Failure) -> Any:
        return shape(response, request, failure) if request.acks else None

    return shaped
