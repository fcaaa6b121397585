"""The operations of the control API: their names, the check of their fields, their description."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from bridgehead.cli.commands import build_app
from bridgehead.cluster.control_commands import COMMANDS
from bridgehead.control_api.openapi import openapi_document
from bridgehead.control_api.operations import (
    BY_PATH,
    OPERATIONS,
    FieldError,
    from_query,
    to_message,
)
from bridgehead.fault_rules import RULE_FIELDS

# Other commands give a shell the same: `up` prints addresses when the cluster is ready.
WITHOUT_COMMAND = {"/health", "/openapi", "/client", "/advertise", "/evidence"}
# `node run` and `zookeeper run` are the commands of containers, without a supervisor; `zookeeper
# dump` reads any ensemble.
WITHOUT_OPERATION = {"node run", "zookeeper run", "zookeeper dump"}
GROUPS = {"node", "controller", "zookeeper", "faults"}
SINGLE = {"status", "heal", "reset", "upgrade", "down", "logs", "judge"}


def commands() -> dict[str, Any]:
    """Return the commands that act on a running cluster, by their words."""
    root: Any = typer.main.get_command(build_app())
    result = {name: root.commands[name] for name in SINGLE}
    for group in GROUPS | {"evidence"}:
        members = root.commands[group]
        names = members.commands if group in GROUPS else {"seal": members.commands["seal"]}
        result |= {f"{group} {name}": members.commands[name] for name in names}
    return result


def test_each_command_for_a_running_cluster_has_its_operation_and_the_reverse() -> None:
    operations = {
        " ".join(operation.words)
        for operation in OPERATIONS
        if operation.path not in WITHOUT_COMMAND
    }
    assert operations == set(commands()) - WITHOUT_OPERATION


@pytest.mark.parametrize("path", sorted(set(BY_PATH) - WITHOUT_COMMAND))
def test_each_field_is_an_option_or_an_argument_of_the_command(path: str) -> None:
    """Seconds of the API are durations such as `500ms` in a shell."""
    operation = BY_PATH[path]
    command = commands()[" ".join(operation.words)]
    parameters = {str(parameter.name) for parameter in command.params}
    other = {"id": "broker", "timeout_s": "timeout", "seconds": "duration"}
    other |= {"delay_ms": "delay", "jitter_ms": "jitter"}
    assert {other.get(field.name, field.name) for field in operation.fields} <= parameters


def test_each_operation_is_executed() -> None:
    """`http` answers /openapi itself, and the supervisor `down`."""
    executed = {operation.command for operation in OPERATIONS} - {"openapi", "down"}
    assert executed == set(COMMANDS)


def test_missing_fields_get_their_defaults() -> None:
    assert to_message(BY_PATH["/controller/wait"], {"other_than": 7}) == {
        "command": "controller_wait",
        "other_than": 7,
        "timeout_s": 30.0,
    }
    assert to_message(BY_PATH["/node/kill"], {"id": 4}) == {"command": "node_kill", "id": 4}


def test_fault_rule_keeps_fields_that_its_own_parser_checks() -> None:
    rule = {"action": "delay", "delay_ms": 70, "colour": "red"}
    assert to_message(BY_PATH["/faults/add"], {**rule, "broker": 2}) == {
        "command": "faults_add",
        "rule": rule,
        "broker": 2,
    }


def test_document_has_each_field_of_a_fault_rule() -> None:
    """The document allows no other fields, so generated clients could not send a missing one."""
    fields = {field.name for field in BY_PATH["/faults/add"].fields}
    assert fields == {"broker", *(rule_field.name for rule_field in RULE_FIELDS)}


@pytest.mark.parametrize(
    ("path", "fields", "sentence"),
    [
        ("/node/kill", {}, "needs the field `id`"),
        ("/node/kill", {"id": "2"}, "`id` is of type integer"),
        ("/node/kill", {"id": True}, "`id` is of type integer"),
        ("/node/kill", {"id": 0}, "`id` is at least 1"),
        ("/node/kill", {"id": 2, "signal": 9}, "no field 'signal'; its fields: id"),
        ("/controller/kill", {"id": 2}, "no field 'id'; its fields: none"),
        ("/controller/wait", {"timeout_s": 601}, "`timeout_s` is from 0 to 600"),
        ("/controller/wait", {"timeout_s": float("nan")}, "`timeout_s` is from 0 to 600"),
        ("/controller/freeze", {"seconds": float("inf")}, "`seconds` is from 0 to 600"),
        ("/heal", {"reset": True}, "no field 'reset'; its fields: none"),
        ("/faults/add", {"action": "drop", "probability": 1.5}, "`probability` is from 0 to 1"),
        ("/faults/add", {"action": "explode"}, "`action` is one of error, delay"),
        ("/faults/add", {"broker": 1}, "needs the field `action`"),
    ],
)
def test_wrong_fields_are_named(path: str, fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(FieldError, match=sentence):
        to_message(BY_PATH[path], fields)


def test_numbers_of_a_query_are_numbers() -> None:
    assert from_query(BY_PATH["/logs"], {"broker": "3", "lines": "45"}) == {
        "broker": 3,
        "lines": 45,
    }
    for text in ("", "-1", "1e3", "٣", "9" * 10):
        with pytest.raises(FieldError, match="`lines` is a number"):
            from_query(BY_PATH["/logs"], {"lines": text})


def test_document_describes_each_operation_and_its_references_exist() -> None:
    document = openapi_document()
    described = {
        (path, method) for path, methods in document["paths"].items() for method in methods
    }
    assert described == {(operation.path, operation.method.lower()) for operation in OPERATIONS}
    ids = [m["operationId"] for methods in document["paths"].values() for m in methods.values()]
    assert len(set(ids)) == len(OPERATIONS)

    def references(value: object) -> list[str]:
        if isinstance(value, dict):
            reference = [value["$ref"]] if "$ref" in value else []
            return reference + [
                member_reference
                for member in value.values()
                for member_reference in references(member)
            ]
        return []

    for reference in references(document):
        place = document
        for word in reference.removeprefix("#/").split("/"):
            place = place[word]
    assert document["paths"]["/node/kill"]["post"]["requestBody"]["required"] is True
    assert document["paths"]["/health"]["get"]["security"] == []
