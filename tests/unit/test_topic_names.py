"""Names of topics: which are legal, which cannot be told apart in metrics."""

from __future__ import annotations

import pytest

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from cluster_model.image import MetadataImage, index_collisions
from cluster_model.records import TopicRecord, TopicRemovalRecord
from cluster_model.topic_names import (
    check_topic_name,
    collision_key,
    has_a_path,
    may_collide,
    path_fault,
)

CHARACTERS = "contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"


@pytest.mark.parametrize("name", ["a", "...", "A.b_c-9", "x" * 249, "__consumer_offsets"])
def test_a_legal_name_passes(name: str) -> None:
    """Letters, digits, dots, underscores and dashes, up to 249 of them."""
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
def test_an_illegal_name_is_refused_in_kafkas_words(name: str, reason: str) -> None:
    """The code is 17 and the text names the first rule broken."""
    with pytest.raises(ApiError) as refused:
        check_topic_name(name)
    assert refused.value.error is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert refused.value.message == f"Topic name is invalid: {reason}"


def test_only_names_with_a_dot_or_an_underscore_may_collide() -> None:
    """Every other name is its own key, and a key with an underscore has no such name."""
    assert [may_collide(name) for name in ("plain", "a-b", "a.b", "a_b")] == [
        False,
        False,
        True,
        True,
    ]
    assert collision_key("a.b_c") == collision_key("a_b.c") == "a_b_c"


def test_the_image_knows_colliding_names_without_a_search() -> None:
    """Creation and removal keep the index that a load builds."""
    image = MetadataImage()
    names = ["a.b", "a_b", "plain"]
    records = [TopicRecord(n, bytes([i + 1]) * 16, ((1,),), {}) for i, n in enumerate(names)]
    image = image.replay(records)
    assert image.colliding == index_collisions(names)
    assert image.colliding["a_b"] == {"a.b", "a_b"}
    image = image.replay([TopicRemovalRecord("a.b"), TopicRemovalRecord("plain")])
    assert image.colliding == index_collisions(["a_b"])


@pytest.mark.parametrize("name", ["", ".", "a/../b", "a//b", "a\x00", "\x7f", "\ue000", "𝄞"])
def test_a_name_that_zookeepers_client_refuses_has_no_path(name: str) -> None:
    """Relative, empty or with a character that it does not take: Java's surrogates are such."""
    assert not has_a_path(name)


@pytest.mark.parametrize("name", ["a", "bad name", "a/b", "ü☃", "...", ".a"])
def test_other_names_have_one(name: str) -> None:
    assert has_a_path(name)


@pytest.mark.parametrize(
    ("path", "fault"),
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
def test_why_a_path_cannot_be_is_said_as_zookeepers_client_says_it(
    path: str, fault: str | None
) -> None:
    """As its PathUtils.validatePath did."""
    assert path_fault(path) == fault
