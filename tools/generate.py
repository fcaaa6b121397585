"""Generates the pages that describe code: `make docs`.

The pages are committed, so that they can be read without running anything; a test checks that they
are current.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Final, NamedTuple

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.apis import API_SPECS, DRAFTED_SPECS, UNSERVED, ApiSpec, Route
from cluster_model import quirks
from event_log import events, evidence
from judge import properties, verdicts
from judge.unjudged import UNJUDGED
from metrics import names
from tools.generate_benchmarks import benchmarks_page
from tools.generate_chaos import chaos_page
from tools.generate_control_api import control_api_page
from tools.generate_deviations import deviations_page
from tools.generate_kafka_bugs import kafka_bugs_page
from tools.generate_kill_matrix import kill_matrix_page
from tools.generate_migration_findings import migration_findings_page
from tools.generate_reference import MARK, commands_page, configuration_page, python_api_page
from tools.markdown import one_line_per_paragraph
from tools.reachable_code import rights_and_errors

FOLDER: Final = Path(__file__).parents[1] / "docs"
_APIS_INTRODUCTION: Final = """\
This page lists the APIs that a broker serves and the APIs that it does not serve. ApiVersions
returns the served ones. The page is generated from `bridgehead/kafka_wire/apis.py`. The rights and
errors are collected from the code of each API.

## Routes

- LOCAL: the broker that receives the request answers it.
- FORWARD: the active controller decides. All other brokers forward the request to it. A broker with
  `bridgehead.forwarding.enable=false` answers NOT_CONTROLLER instead of forwarding.
- ON_CONTROLLER: only the active controller's broker executes the request. All other brokers answer
  NOT_CONTROLLER.

A broker below the bridge release does not forward clients' requests ([upgrade](upgrade.md)). It
writes configs, quotas, ACLs and delegation tokens itself. It answers all other FORWARD requests
with NOT_CONTROLLER, unless it is the active controller's broker.

## Dialects

A *drafted listener* is a listener with `bridgehead.dialect=drafted`. All other listeners have the
default, `bridgehead.dialect=shipped`. In a cell of the table, the text after `drafted:` says what
is different on drafted listeners. [kips](kips.md) lists the differences that the table does not
show.

A drafted listener forwards only the eight APIs of KIP-590. It forwards each of them only in
versions below the version given here: {bumps}.
Any other FORWARD request on a drafted listener gets NOT_CONTROLLER, unless the broker is the active
controller.

Changes of one broker's configs or logger levels are a special case:

- A change of a broker's logger levels must be sent to that broker. The broker makes the change
  itself.
- On a shipped listener, a change of a broker's configs must also be sent to that broker. The broker
  checks the change and then forwards it. On a drafted listener, the change need not be sent to that
  broker.

## Errors and closed connections

- Every API can return UNKNOWN_SERVER_ERROR. FORWARD and ON_CONTROLLER requests can return
  NOT_CONTROLLER. The table does not repeat these errors.
- A forwarded request returns REQUEST_TIMED_OUT if no controller answers within
  `request.timeout.ms`. CreateTopics, DeleteTopics, CreatePartitions and ElectLeaders also return
  REQUEST_TIMED_OUT if they are not complete within the timeout in the request. The table does not
  repeat this error for FORWARD requests.
- A broker closes the connection after a malformed request, and after a request with a version that
  the table does not list. ApiVersions is an exception: with such a version it gets
  UNSUPPORTED_VERSION.
- A broker with `bridgehead.data.plane=false` does not serve {stored}.
- THROTTLING_QUOTA_EXCEEDED is returned from these versions on: {strict}.
  The controller executes requests of older versions, and the client is throttled afterwards.
- Without a data plane, only two client quotas are enforced: `controller_mutation_rate` and
  `connection_creation_rate`. [differences](differences.md) has the reason.
- Without an authorizer everything is allowed. The column *without the rights* has the authorization
  errors; the column *errors* omits them.

## Served APIs\
"""
_QUARANTINE: Final = (
    "The judges quarantine a line of evidence that they cannot judge. The witness that the line",
    "belongs to then has a gap. Only for the reason `wrong_run` do the judges reject the whole run",
    "instead. The reasons:",
)
# The part of a key's spelling that is code, such as <node>/<boot>/<seq>.
_PLACEHOLDERS: Final = re.compile(r"[\w/]*<[^>]*>(?:[/-]<[^>]*>)*")
_UNSERVED_INTRODUCTION: Final = (
    "## Unserved APIs",
    "",
    "Bridgehead does not serve these APIs of Kafka 3.9. A broker that receives such a request",
    "closes the connection.",
)
# Errors that any API of a route can return.
ALWAYS: Final[Mapping[Route, Set[str]]] = {
    Route.LOCAL: {"UNKNOWN_SERVER_ERROR"},
    Route.FORWARD: {"UNKNOWN_SERVER_ERROR", "REQUEST_TIMED_OUT", "NOT_CONTROLLER"},
    Route.ON_CONTROLLER: {"UNKNOWN_SERVER_ERROR", "NOT_CONTROLLER"},
}
_OF_COORDINATOR: Final = frozenset({"COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"})
_OF_MEMBER: Final = _OF_COORDINATOR | {
    *("FENCED_INSTANCE_ID", "ILLEGAL_GENERATION", "INVALID_GROUP_ID", "UNKNOWN_MEMBER_ID")
}
# Errors that SASL authentication, the dispatcher, the policies and the coordinator return; the
# API's own code does not name them.
_ERRORS_ELSEWHERE: Final[Mapping[int, Set[str]]] = {
    ApiKey.SASL_HANDSHAKE: {"UNSUPPORTED_SASL_MECHANISM"},
    ApiKey.SASL_AUTHENTICATE: {"SASL_AUTHENTICATION_FAILED"},
    ApiKey.API_VERSIONS: {"UNSUPPORTED_VERSION"},
    ApiKey.CREATE_TOPICS: {"POLICY_VIOLATION"},
    ApiKey.CREATE_PARTITIONS: {"POLICY_VIOLATION"},
    ApiKey.ALTER_CONFIGS: {"POLICY_VIOLATION"},
    ApiKey.INCREMENTAL_ALTER_CONFIGS: {"POLICY_VIOLATION"},
    ApiKey.ALTER_TOPICS: {"POLICY_VIOLATION"},
    # These errors come from logs and the coordinator. The errors about groups that are loading or
    # not empty cannot occur with bridgehead.data.plane=false.
    ApiKey.PRODUCE: {
        *("INVALID_PRODUCER_EPOCH", "INVALID_RECORD", "INVALID_TIMESTAMP", "NOT_ENOUGH_REPLICAS"),
        *("NOT_ENOUGH_REPLICAS_AFTER_APPEND", "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        *("REQUEST_TIMED_OUT", "UNSUPPORTED_COMPRESSION_TYPE"),
    },
    ApiKey.FETCH: {"KAFKA_STORAGE_ERROR", "UNKNOWN_LEADER_EPOCH"},
    ApiKey.OFFSET_FOR_LEADER_EPOCH: {
        *("NOT_LEADER_OR_FOLLOWER", "UNKNOWN_LEADER_EPOCH", "UNKNOWN_TOPIC_OR_PARTITION"),
    },
    ApiKey.OFFSET_COMMIT: {
        *_OF_MEMBER,
        *("COORDINATOR_NOT_AVAILABLE", "INVALID_COMMIT_OFFSET_SIZE", "OFFSET_METADATA_TOO_LARGE"),
        *("REBALANCE_IN_PROGRESS",),
    },
    ApiKey.JOIN_GROUP: {
        *_OF_MEMBER - {"ILLEGAL_GENERATION"},
        *("GROUP_MAX_SIZE_REACHED", "INCONSISTENT_GROUP_PROTOCOL", "INVALID_SESSION_TIMEOUT"),
        *("MEMBER_ID_REQUIRED",),
    },
    ApiKey.SYNC_GROUP: {*_OF_MEMBER, "REBALANCE_IN_PROGRESS"},
    ApiKey.HEARTBEAT: {*_OF_MEMBER, "REBALANCE_IN_PROGRESS"},
    ApiKey.LEAVE_GROUP: _OF_MEMBER - {"ILLEGAL_GENERATION"},
    ApiKey.LIST_GROUPS: {"COORDINATOR_LOAD_IN_PROGRESS"},
    ApiKey.DESCRIBE_GROUPS: _OF_COORDINATOR,
    ApiKey.DELETE_GROUPS: {*_OF_COORDINATOR, "GROUP_ID_NOT_FOUND", "NON_EMPTY_GROUP"},
    ApiKey.OFFSET_FETCH: {*_OF_COORDINATOR, "UNSTABLE_OFFSET_COMMIT"},
    ApiKey.OFFSET_DELETE: {
        *_OF_COORDINATOR,
        *("GROUP_ID_NOT_FOUND", "GROUP_SUBSCRIBED_TO_TOPIC"),
        *("INVALID_GROUP_ID", "NON_EMPTY_GROUP"),
    },
}
# Errors that an API's code names but never sends. FindCoordinator gets them from the creation of an
# internal topic, and sends another error.
_ERRORS_NOT_SENT: Final[Mapping[int, Set[str]]] = {
    ApiKey.FIND_COORDINATOR: {
        "LEADER_NOT_AVAILABLE",
        "REQUEST_TIMED_OUT",
        "TOPIC_ALREADY_EXISTS",
        "UNKNOWN_TOPIC_OR_PARTITION",
    }
}
_DENIED: Final[Mapping[str, str]] = {
    "TOPIC": "TOPIC_AUTHORIZATION_FAILED",
    "GROUP": "GROUP_AUTHORIZATION_FAILED",
    "TRANSACTIONAL_ID": "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    "CLUSTER": "CLUSTER_AUTHORIZATION_FAILED",
    "DELEGATION_TOKEN": "DELEGATION_TOKEN_AUTHORIZATION_FAILED",
    "USER": "DELEGATION_TOKEN_AUTHORIZATION_FAILED",
}
_PER_RESOURCE: Final = "{CLUSTER} for a broker and its loggers, {TOPIC} for a topic"
_OWN_TOKENS: Final = "no right is needed; the client must be the owner or a renewer of the token"
# APIs that need more explanation than the error of the resource's type.
_WITHOUT_RIGHT: Final[Mapping[int, str]] = {
    ApiKey.METADATA: "{TOPIC}. The response to a request for all topics omits the topic instead. "
    "CREATE is needed only to create a missing topic. DESCRIBE on CLUSTER is needed only to see "
    "the authorized operations of the cluster",
    ApiKey.FETCH: "{TOPIC}. Consumers need READ; followers need CLUSTER_ACTION",
    ApiKey.LIST_GROUPS: "the response omits the group. Either of the two rights suffices",
    ApiKey.INIT_PRODUCER_ID: "for a request without a transactional id: {CLUSTER}, unless the "
    "client has IDEMPOTENT_WRITE or has WRITE on any topic. For a request with a transactional id: "
    "{TRANSACTIONAL_ID}",
    ApiKey.OFFSET_FOR_LEADER_EPOCH: "{TOPIC}. Either of the two rights suffices",
    ApiKey.OFFSET_FETCH: "{GROUP}, {TOPIC}. The response to a request for all topics omits the "
    "topic instead",
    ApiKey.CREATE_TOPICS: "{TOPIC}. CREATE on CLUSTER or on TOPIC suffices. Without "
    "DESCRIBE_CONFIGS, the result of a created topic has no configs, number of partitions, "
    "replication factor or topic id; drafted: {CLUSTER}, and only CREATE on CLUSTER suffices",
    ApiKey.DELETE_TOPICS: "{TOPIC}. A deletion by name gets this error even if the topic does not "
    "exist. A deletion by id without DESCRIBE gets UNKNOWN_TOPIC_ID; drafted: with neither "
    "right, a deletion by name gets INVALID_TOPIC_EXCEPTION, as for a topic that does not exist",
    ApiKey.DESCRIBE_CONFIGS: _PER_RESOURCE,
    ApiKey.ALTER_CONFIGS: _PER_RESOURCE,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _PER_RESOURCE,
    ApiKey.CREATE_DELEGATION_TOKEN: "{USER}. The right is needed only to create a token for "
    "another owner",
    ApiKey.RENEW_DELEGATION_TOKEN: _OWN_TOKENS,
    ApiKey.EXPIRE_DELEGATION_TOKEN: _OWN_TOKENS,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: "the response omits the token. A client needs no right for "
    "tokens that it owns, requested or may renew. For other tokens either of the two rights "
    "suffices",
    ApiKey.DESCRIBE_CLUSTER: "the response omits only the authorized operations",
    ApiKey.ENVELOPE: "{CLUSTER} on the listener for Envelopes; on other listeners the broker "
    "closes the connection of every client; drafted: {CLUSTER} on every listener",
    ApiKey.LIST_ACLS: "{CLUSTER}. A request for the client's own principal needs no right; without "
    "the right the response has only Allow rules",
}


def quirks_page() -> str:
    """Return the page about quirks."""
    page = ["# Quirks", "", MARK, "", *_sentences(quirks.__doc__), ""]
    page += ["| name | API | behaviour | difference |", "|---|---|---|---|"]
    page += [
        _row(quirk.name, quirk.apis, quirk.description, ", ".join(f"`{row}`" for row in quirk.rows))
        for quirk in quirks.QUIRK_LIST
    ]
    page += [
        "",
        "These sections of [differences](differences.md) describe other harmful behaviours of",
    ]
    page += ["Kafka. No quirk reproduces them:", ""]
    page += ["| difference | reason |", "|---|---|"]
    page += [_row(row, reason) for row, reason in quirks.UNSUPPORTED_QUIRKS.items()]
    return "\n".join([*page, ""])


def apis_page() -> str:
    """Return the page about APIs: first the served ones, then the unserved ones with reasons."""
    specs = list(DRAFTED_SPECS.values())
    introduction = _APIS_INTRODUCTION.format(
        bumps=_versions((spec.name, spec.forwarded_below) for spec in specs),
        strict=_versions((spec.name, spec.strict_quota_from) for spec in specs),
        stored=", ".join(spec.name for spec in specs if spec.needs_data_plane),
    )
    page = ["# APIs", "", MARK, "", introduction, ""]
    page += ["| API | key | versions | route | rights | without the rights | errors |"]
    page += ["|---|---|---|---|---|---|---|"]
    page += [_api_row(spec) for spec in specs if spec.route is not None]
    page += ["", *_UNSERVED_INTRODUCTION, "", "| API | key | reason |", "|---|---|---|"]
    page += [_row(_name(key), str(int(key)), reason) for key, reason in sorted(UNSERVED.items())]
    return "\n".join([*page, ""])


def possible_errors(spec: ApiSpec) -> set[str]:
    """Return the names of all errors that an API can return."""
    _, named = rights_and_errors(spec.key)
    errors = named | _ERRORS_ELSEWHERE.get(spec.key, set()) | ALWAYS[spec.route or Route.LOCAL]
    if spec.strict_quota_from is not None:
        errors.add("THROTTLING_QUOTA_EXCEEDED")
    return errors - _ERRORS_NOT_SENT.get(spec.key, set()) - {"NONE"}


def _api_row(spec: ApiSpec) -> str:
    """Return the row of a drafted spec; it also names the shipped versions if they differ."""
    assert spec.route is not None
    shipped = API_SPECS.get(spec.key)
    first = max(spec.min_version, spec.served_from)
    versions, route = f"{first} to {spec.max_version}", spec.route.name
    if shipped is None:
        route = f"drafted: {route}"
    elif shipped.max_version != spec.max_version:
        versions = f"{first} to {shipped.max_version}; drafted: {versions}"
    rights = sorted({*spec.rights, *spec.rights_to_see})
    denials = list(dict.fromkeys(_DENIED[kind] for _, kind in rights))
    denied = _WITHOUT_RIGHT.get(spec.key, ", ".join(denials) or "no right is needed")
    errors = possible_errors(spec) - ALWAYS[spec.route] - set(denials)
    return _row(
        spec.name,
        str(int(spec.key)),
        versions,
        route,
        ", ".join(f"{operation} on {kind}" for operation, kind in rights) or "-",
        denied.format(**_DENIED),
        ", ".join(sorted(errors)) or "-",
    )


def _name(key: ApiKey) -> str:
    return DRAFTED_SPECS[key].name if key in DRAFTED_SPECS else key.name.title().replace("_", "")


def _versions(of_apis: Iterable[tuple[str, int | None]]) -> str:
    return ", ".join(f"{name} {version}" for name, version in of_apis if version is not None)


def events_page() -> str:
    """Return the page about events: every kind with its fields."""
    page = ["# Events", "", MARK, "", *_sentences(inspect.getdoc(events))]
    page += [
        "",
        "A node appends its events to files in `node=<id>/`, a folder in the run's folder",
        "([evidence.md](evidence.md)). Each line is one JSON object.",
        f"`schema_version` is {events.SCHEMA_VERSION}.",
        "",
    ]
    for kind, event in events.EVENT_KINDS.items():
        page += [f"## {kind}", "", *_sentences(inspect.getdoc(event)), ""]
        page += ["| field | type | meaning |", "|---|---|---|"]
        page += [_row(name, kind, note) for name, kind, note in _fields(event)]
        page.append("")
    return "\n".join(page)


def properties_page() -> str:
    """Return the page about properties: verdicts, every property, reasons for quarantine."""
    page = ["# Properties", "", MARK, "", *_sentences(properties.__doc__), ""]
    page += ["## Verdicts", "", *_sentences(verdicts.__doc__), "", "## The properties", ""]
    page += [
        "| id | name | statement | witnesses | rows | key of a violation | a gap blocks |",
        "|---|---|---|---|---|---|---|",
    ]
    for property_spec in properties.PROPERTY_SPECS:
        blocked = {"PASS": property_spec.gap_blocks_pass, "FAIL": property_spec.gap_blocks_fail}
        gap = ", ".join(name for name, is_blocked in blocked.items() if is_blocked)
        key = _PLACEHOLDERS.sub(r"`\g<0>`", property_spec.key)
        witnesses = ", ".join(property_spec.witnesses)
        page.append(
            _row(
                property_spec.id,
                property_spec.name,
                property_spec.statement,
                witnesses,
                property_spec.row,
                key,
                gap,
            )
        )
    page += ["", "## Not judged", "", "No property judges these statements:", ""]
    page += ["| statement | reason |", "|---|---|"]
    page += [f"| {statement} | {reason} |" for statement, reason in UNJUDGED]
    page += ["", "## Quarantine", "", *_QUARANTINE, ""]
    page += ["| reason | meaning |", "|---|---|"]
    page += [_row(name, meaning) for name, meaning in evidence.QUARANTINE_REASONS.items()]
    return "\n".join([*page, ""])


def metrics_page() -> str:
    """Return the page about metrics."""
    page = ["# Metrics", "", MARK, "", *_sentences(names.__doc__), ""]
    page += [
        "Every node serves its metrics over HTTP as Prometheus text; `bridgehead status --json`",
        "and `cluster.json` name each node's `metrics_url`. A metric of kind *quantiles* has one",
        "gauge for each value of its label `quantile`. Kafka dashboards use two spellings for",
        "Kafka's counters `…PerSec`; `bridgehead.metrics.dialect` selects `confluent`, `strimzi`",
        "or `both`. If a row has two names, the first is Confluent's and the second is Strimzi's.",
        "",
        "| name | original name | kind | labels | meaning |",
        "|---|---|---|---|---|",
    ]
    page += [
        _row(
            "` `".join(names.exposed_names(metric, names.CounterSpelling.BOTH)),
            metric.original,
            metric.kind.value,
            ", ".join(metric.labels),
            metric.help,
        )
        for metric in names.METRICS
    ]
    return "\n".join([*page, ""])


def _fields(event: type) -> Iterator[tuple[str, str, str]]:
    """Yield name, type and comment of each field, in the order of the JSON keys."""
    lines = inspect.getsource(event).splitlines()
    (definition,) = ast.parse("\n".join(lines)).body
    assert isinstance(definition, ast.ClassDef)
    for statement in definition.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            if statement.target.id == "kind":
                continue
            note = lines[statement.lineno - 1].partition("  # ")[2]
            yield statement.target.id, ast.unparse(statement.annotation), note


def _sentences(docstring: str | None) -> list[str]:
    return inspect.cleandoc(docstring or "").splitlines()


def _row(*cells: str) -> str:
    first, *others = (cell.replace("|", "\\|") for cell in cells)
    return f"| `{first}` | {' | '.join(others)} |"


class Page(NamedTuple):
    """A generated page: the function that returns it, and the files and folders to edit."""

    generate: Callable[[], str]
    written_in: Sequence[str]


PAGES: Final[Mapping[str, Page]] = {
    "apis.md": Page(apis_page, ("tools/generate.py", "bridgehead/kafka_wire/apis.py")),
    "benchmarks.md": Page(benchmarks_page, ("tools/generate_benchmarks.py", "bench/results.json")),
    "chaos.md": Page(
        chaos_page,
        ("tools/generate_chaos.py", "chaos/scenarios", "chaos/faults", "chaos/workloads"),
    ),
    "commands.md": Page(commands_page, ("tools/generate_reference.py", "bridgehead/cli")),
    "configuration.md": Page(
        configuration_page, ("tools/generate_reference.py", "cluster_model/configs")
    ),
    "control-api.md": Page(
        control_api_page, ("tools/generate_control_api.py", "bridgehead/control_api/operations.py")
    ),
    "deviations.md": Page(deviations_page, ("tools/generate_deviations.py", "docs/kips.md")),
    "events.md": Page(events_page, ("event_log/events.py",)),
    "kafka-bugs.md": Page(kafka_bugs_page, ("tools/generate_kafka_bugs.py", "chaos")),
    "kill-matrix.md": Page(
        kill_matrix_page, ("tools/generate_kill_matrix.py", "tests/kill_matrix")
    ),
    "metrics.md": Page(metrics_page, ("metrics/names.py", "tools/generate.py")),
    "migration-findings.md": Page(
        migration_findings_page,
        ("tools/generate_migration_findings.py", "rehearse/checks", "rehearse/seeds.py"),
    ),
    "properties.md": Page(
        properties_page,
        ("judge/properties", "judge/verdicts.py", "judge/unjudged.py", "event_log/evidence.py"),
    ),
    "python-api.md": Page(python_api_page, ("bridgehead", "tools/generate_reference.py")),
    "quirks.md": Page(quirks_page, ("cluster_model/quirks.py",)),
}
"""The generated pages, by file name."""


def text_of(name: str) -> str:
    """Return the text of a page of PAGES, with the line that says what to edit."""
    page = PAGES[name]
    *files, last = (f"`{folder}`" for folder in page.written_in)
    places = f"{', '.join(files)} and {last}" if files else last
    mark = f"<!-- Generated by tools/generate.py (`make docs`); edit {places} instead. -->"
    return one_line_per_paragraph(page.generate().replace(MARK, mark))


def main() -> int:
    """Write the pages; return 0."""
    for name in PAGES:
        (FOLDER / name).write_text(text_of(name), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
