"""A deleted topic is noticed even if no metadata update says that it was deleted."""

from __future__ import annotations

import pytest

from broker_proxy.metadata.cache import CachedTopic, KnownTopicIds

OLD, NEW = b"o" * 16, b"n" * 16


def topics(**ids: bytes) -> dict[str, CachedTopic]:
    return {name: CachedTopic(name, topic_id, {}) for name, topic_id in ids.items()}


def test_an_update_deletes_only_topics_that_are_gone() -> None:
    topic_ids = KnownTopicIds()
    assert topic_ids.deleted(topics(a=OLD, b=OLD), None) == set()
    assert topic_ids.deleted(topics(a=OLD), ["a", "b"]) == {"b"}
    assert topic_ids.deleted(topics(a=OLD), ["b"]) == set()


def test_a_full_image_deletes_the_topics_that_it_lacks() -> None:
    topic_ids = KnownTopicIds()
    topic_ids.deleted(topics(a=OLD, b=OLD), None)
    assert topic_ids.deleted(topics(a=OLD, c=NEW), None) == {"b"}


def test_a_topic_with_another_id_was_deleted_and_created_again() -> None:
    """With the committed offsets of the deleted topic, consumers would skip records."""
    topic_ids = KnownTopicIds()
    topic_ids.deleted(topics(a=OLD), None)
    assert topic_ids.deleted(topics(a=NEW), ["a"]) == {"a"}
    assert topic_ids.deleted(topics(a=NEW), ["a"]) == set()


@pytest.mark.parametrize("no_id", [b"", bytes(16)])
def test_a_topic_that_gets_its_first_id_was_not_deleted(no_id: bytes) -> None:
    topic_ids = KnownTopicIds()
    topic_ids.deleted(topics(a=no_id), None)
    assert topic_ids.deleted(topics(a=NEW), ["a"]) == set()
    assert topic_ids.deleted(topics(), ["a"]) == {"a"}


def test_an_unreadable_topic_is_not_deleted_until_it_is_missing_without_being_unreadable() -> None:
    """Otherwise the offsets that groups committed for it would be deleted."""
    ids = KnownTopicIds()
    ids.deleted(topics(a=OLD), None)
    assert ids.deleted({}, None, {"a"}) == set()
    assert ids.deleted({}, None) == {"a"}
