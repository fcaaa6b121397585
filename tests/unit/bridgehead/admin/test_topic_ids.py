"""Topic ids as text."""

from __future__ import annotations

import pytest

from bridgehead.admin.calls.topics import topic_id_bytes, topic_id_text
from bridgehead.admin.errors import InvalidCallError

ID = "x-_Qm1z5Q6uT0b7c8d9e0A"


def test_the_text_of_a_topic_id_round_trips() -> None:
    assert topic_id_text(topic_id_bytes(ID)) == ID


@pytest.mark.parametrize(
    "text", ["", "x", ID + "!", ID + "\n", ID[:-1] + "B", ID + "A", "x+/" + ID[3:]]
)
def test_a_text_that_is_no_topic_id_does_not_name_another_topic(text: str) -> None:
    with pytest.raises(InvalidCallError, match="a topic id has 22 characters"):
        topic_id_bytes(text)
