"""Java's .properties format, as Kafka's server.properties uses it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.cluster.properties import format_properties, parse_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", {"a": "1"}),
        ("a = 1 ", {"a": "1 "}),
        ("a:1", {"a": "1"}),
        ("a 1", {"a": "1"}),
        ("a\t\f= 1", {"a": "1"}),
        ("a==1", {"a": "=1"}),
        ("a", {"a": ""}),
        ("a=\n", {"a": ""}),
        ("# a=1\n! b=2\n  #c=3\n\n", {}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1,\\\n    2,\\\n    3", {"a": "1,2,3"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\\n# no comment here", {"a": "1# no comment here"}),
        ("a=1\\", {"a": "1"}),
        ("a\\ b\\=c=d", {"a b=c": "d"}),
        ("a=\\u00e9\\t\\n\\x", {"a": "é\t\nx"}),
        ("a=\\ud83d\\ude00", {"a": "\U0001f600"}),
        ("a=1\na=2", {"a": "2"}),
        ("listeners=PLAINTEXT://:9092", {"listeners": "PLAINTEXT://:9092"}),
        ("  a  =  b c  ", {"a": "b c  "}),
    ],
)
def test_properties_are_parsed_as_in_java(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


def test_malformed_unicode_escape_is_rejected() -> None:
    """Java also rejects such an escape."""
    with pytest.raises(ValueError, match="Malformed"):
        parse_properties("a=\\u12")


def test_error_of_a_malformed_escape_names_the_property_and_not_its_value() -> None:
    with pytest.raises(ValueError, match="Malformed") as raised:
        parse_properties('a=1\nsasl.jaas.config=Module required password="secr\\user";')
    assert "sasl.jaas.config" in str(raised.value)
    assert "secr" not in str(raised.value)


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(st.dictionaries(_TEXT, _TEXT, max_size=5))
def test_formatted_properties_are_parsed_to_the_same_properties(properties: dict[str, str]) -> None:
    assert parse_properties(format_properties(properties)) == properties
