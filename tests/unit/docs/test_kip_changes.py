"""The changes of tests/kips find one part of a function, change it, and refuse a doubtful part."""

from __future__ import annotations

import ast

import pytest

from tests.kips.changes import (
    Change,
    added,
    argument,
    assigned,
    both,
    call,
    caught,
    condition,
    definition,
    entry,
    expression,
    iterated,
    operand,
    returned,
    statement,
    swapped,
    value,
)
from tests.kips.mutant import Mutant
from tests.kips.patterns import AnchorError

MODULE = '''
import logging

LIMIT = 5
TABLE = {"a": 1, "b": 2}
RIGHTS = ("READ", "WRITE")


class Message:
    """A message."""

    first: int = wire(INT8)
    second: int = wire(INT16, versions="1+")


def copied(request, context):
    """Copy the topics."""
    topics, done = [], None
    if request.validate_only:
        return None
    for topic in request.topics:
        if context.authorize("READ", topic.name) and topic.size < LIMIT:
            topics.append(Topic(topic.name, size=topic.size, late=not done))
    try:
        send(topics)
    except OSError:
        done = error(Code.NONE)
    return Answer(topics)
'''


def _changed(name: str, change: Change) -> str:
    return Mutant(("1",), "module", name, change).applied_to(MODULE)


@pytest.mark.parametrize(
    ("change", "old", "new"),
    [
        (condition("validate_only").never(), "if request.validate_only:", "if False:"),
        (condition("validate_only").always(), "if request.validate_only:", "if True:"),
        (condition("validate_only").negated(), "if request.v", "if not request.v"),
        (condition(guarding="Topic").becomes("1"), "authorize('READ', topic.name) and", "if 1:"),
        (operand("authorize").removed(), "if context", "if topic.size < LIMIT:"),
        (assigned("error").becomes("LIMIT"), "error(Code.NONE)", "done = LIMIT"),
        (returned("Answer($all)").becomes("$all"), "return Answer(topics)", "return topics"),
        (iterated("topics").becomes("reversed($old)"), "in request.topics", "in reversed(request"),
        (caught("OSError").becomes("ValueError"), "except OSError", "except ValueError"),
        (expression("Code.NONE").becomes("LIMIT"), "Code.NONE", "error(LIMIT)"),
        (call("Topic").with_arguments(size="$old + 1"), "size=topic.size,", "size=topic.size + 1,"),
        (call("Topic").with_arguments(new="LIMIT"), "late=not done)", "late=not done, new=LIMIT)"),
        (call("Topic").without("size"), "size=topic.size, ", "Topic(topic.name, late"),
        (call("Topic(..., late=$late)").becomes("$late"), "Topic(", "append(not done)"),
        (call("authorize").renamed("denies"), "context.authorize", "context.denies('READ'"),
        (argument("authorize('READ', ...)", 1).becomes("'all'"), "topic.name) and", "'all') and"),
        (statement("send").removed(), "send(topics)", "pass"),
        (statement("send").becomes("return LIMIT"), "send(topics)", "return LIMIT"),
        (statement("Topic").preceded_by("print(LIMIT)"), None, "print(LIMIT)\n            topics."),
        (statement("send").followed_by("print(LIMIT)"), None, "send(topics)\n        print(LIMIT)"),
        (
            statement("send", where="Topic($topic.name, ...)").preceded_by("print($topic)"),
            None,
            "print(topic)\n        send(",
        ),
    ],
    ids=str,
)
def test_a_change_of_a_part_of_a_function(change: Change, old: str | None, new: str) -> None:
    changed = _changed("copied", change)
    assert new in changed
    if old is not None:
        assert old in ast.unparse(ast.parse(MODULE))
        assert old not in changed


@pytest.mark.parametrize(
    ("name", "change", "new"),
    [
        ("LIMIT", value().becomes("6"), "LIMIT = 6"),
        ("TABLE", entry("'a'").becomes("3"), "{'a': 3, 'b': 2}"),
        ("TABLE", entry("'a'").removed(), "{'b': 2}"),
        ("Message.first", definition().removed(), '"""\n    second'),
        (
            "Message.second",
            call("wire").with_arguments(versions="'2+'"),
            "wire(INT16, versions='2+')",
        ),
        ("Message", swapped("first", "second"), "versions='1+')\n    first: int"),
        ("RIGHTS", expression("'READ'").becomes("'ALTER'"), "('ALTER', 'WRITE')"),
        ("", added("import re"), "\nimport re"),
        (
            "RIGHTS",
            both(expression("'READ'").becomes("1"), expression("'WRITE'").becomes("2")),
            "(1, 2)",
        ),
    ],
    ids=str,
)
def test_a_change_of_a_constant_a_field_or_a_module(name: str, change: Change, new: str) -> None:
    assert new not in ast.unparse(ast.parse(MODULE))
    assert new in _changed(name, change)


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        ("copied", call("missing").becomes("1"), "no call missing"),
        ("copied", returned().never(), "2 times returned value"),
        ("copied", condition("authorize", "missing").never(), "no condition authorize missing"),
        ("copied", call("Topic").without("absent"), "no keyword absent of Topic"),
        ("copied", statement("send").becomes("print(topics)"), "names topics, which the module"),
        ("copied", statement("send").becomes("print($all)"), r"no pattern captures \$all"),
        ("copied", call("Topic", where="$x.size").becomes("$y"), r"no pattern captures \$y"),
        ("copied", call("Topic", where="print($x)").becomes("$x"), r"no pattern print\(\$x\)"),
        ("copied", call("Topic", where="$x.name < 1").becomes("$x"), "no pattern"),
        ("missing", value().becomes("1"), "no definition missing"),
        ("Message.missing", value().becomes("1"), "no definition missing of Message.missing"),
    ],
    ids=str,
)
def test_a_part_that_is_not_found_or_is_not_the_only_one(
    name: str, change: Change, problem: str
) -> None:
    with pytest.raises(AnchorError, match=problem):
        _changed(name, change)


def test_the_innermost_part_is_changed() -> None:
    assert "topics.append(" not in _changed("copied", statement("Topic").removed())
    assert "for topic in request.topics" in _changed("copied", statement("Topic").removed())


def test_a_value_that_is_captured_twice_must_be_the_same() -> None:
    pattern = "[$each for $each in $all if $each not in $some]"
    module = "def f(a, b):\n    return [x for x in a if x not in b], [x for x in a if a not in b]"
    mutant = Mutant(("1",), "module", "f", expression(pattern).becomes("$all"))
    assert mutant.applied_to(module).endswith("return (a, [x for x in a if a not in b])")
