"""The JSON files of Kafka's tools, read with a check of each field."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any, TypeVar

from bridgehead.cli.tools.tool import ToolError

T = TypeVar("T")


def parse_json(text: str) -> dict[str, Any]:
    """Return the object of a JSON text.

    Raises:
        ToolError: the text is not a JSON object, or its version is not 1.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise ToolError("The input string is not a valid JSON")
    if document.get("version", 1) != 1:
        raise ToolError(f"Not supported version field value {document['version']}")
    return document


def elements(document: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the objects of an array. Raises ToolError."""
    value = document[name]
    if not isinstance(value, list) or not all(isinstance(element, dict) for element in value):
        raise ToolError(f'"{name}" is not an array of objects')
    return value


def field(element: dict[str, Any], name: str, kind: type[T]) -> T:
    """Return a field of an element. Raises ToolError."""
    value = element.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        words = {str: "a text", int: "an integer", list: "an array"}
        raise ToolError(f'"{name}" is not {words[kind]} in {json.dumps(element)}')
    return value


def twice(values: Iterable[T]) -> list[T]:
    """Return the values that occur more than once, without repetition.

    >>> twice([1, 2, 1, 1])
    [1]
    """
    return [value for value, count in Counter(values).items() if count > 1]
