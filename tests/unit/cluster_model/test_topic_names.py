"""Topic names: validity, and collisions in metrics."""

from __future__ import annotations

import pytest

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from cluster_model.image import MetadataImage, index_collisions
from cluster_model.records import TopicRecord, TopicRemovalRecord
from cluster_model.topic_names import (
    check_topic_name,
    collision_key,
    has_valid_path,
    may_collide,
)
from cluster_model.znode_names import path_error

CHARACTERS = "contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"


@pytest.mark.parametrize("name", ["a", "...", "A.b_c-9", "x" * 249, "__consumer_offsets"])
def test_valid_names_are_accepted(name: str) -> None:
    check_topic_name(name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, f"the length of '{'x' * 250}' is longer than the max allowed length 249"),
        ("a b", f"'a b' {CHARACTERS}"),
        ("a\n", f"'a\n' {CHARACTERS}"),
        ("\u0661", f"'\u0661' {CHARACTERS}"),
        ("𝄞" * 124, f"'{'𝄞' * 124}' {CHARACTERS}"),
        ("𝄞" * 125, f"the length of '{'𝄞' * 125}' is longer than the max allowed length 249"),
    ],
)
def test_invalid_names_have_kafkas_error(name: str, reason: str) -> None:
    with pytest.raises(ApiError) as rejected:
        check_topic_name(name)
    assert rejected.value.error is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert rejected.value.message == f"Topic name is invalid: {reason}"


def test_only_names_with_a_dot_or_an_underscore_may_collide() -> None:
    assert [may_collide(name) for name in ("plain", "a-b", "a.b", "a_b")] == [
        False,
        False,
        True,
        True,
    ]
    assert collision_key("a.b_c") == collision_key("a_b.c") == "a_b_c"


def test_the_image_indexes_colliding_names() -> None:
    """Creations and deletions update the index."""
    image = MetadataImage()
    names = ["a.b", "a_b", "plain"]
    records = [TopicRecord(n, bytes([i + 1]) * 16, ((1,),), {}) for i, n in enumerate(names)]
    image = image.replay(records)
    assert image.colliding == index_collisions(names)
    assert image.colliding["a_b"] == {"a.b", "a_b"}
    image = image.replay([TopicRemovalRecord("a.b"), TopicRemovalRecord("plain")])
    assert image.colliding == index_collisions(["a_b"])


@pytest.mark.parametrize("name", ["", ".", "a/../b", "a//b", "a\x00", "\x7f", "\ue000", "𝄞"])
def test_some_topic_names_give_an_invalid_znode_path(name: str) -> None:
    """A part of the path is empty or relative, or has a character that ZooKeeper rejects."""
    assert not has_valid_path(name)


@pytest.mark.parametrize("name", ["a", "bad name", "a/b", "ü☃", "...", ".a"])
def test_other_topic_names_give_a_valid_znode_path(name: str) -> None:
    assert has_valid_path(name)


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/c/a//b", 'Invalid path string "/c/a//b" caused by empty node name specified @5'),
        ("/c/.", 'Invalid path string "/c/." caused by relative paths not allowed @3'),
        ("/c/a/./b", 'Invalid path string "/c/a/./b" caused by relative paths not allowed @5'),
        ("/c/\0", 'Invalid path string "/c/\0" caused by null character not allowed @3'),
        ("/c/\x1f", 'Invalid path string "/c/\x1f" caused by invalid character @3'),
        ("/c/𝄞/..", 'Invalid path string "/c/𝄞/.." caused by invalid character @3'),
        ("/c//", "Path must not end with / character"),
        ("/c/\xa0\ud7ff\uf900\uffef", None),
    ],
)
def test_path_errors_have_the_texts_of_zookeepers_client(path: str, error: str | None) -> None:
    """The texts are from PathUtils.validatePath."""
    assert path_error(path) == error
