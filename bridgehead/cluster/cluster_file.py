"""Reads a cluster's settings from `cluster.yaml` or Kafka's `server.properties`, and from options.

A `.properties` file applies to every broker; any other file is YAML in the form of `ClusterFile`.
Options take precedence. A supervisor does not import this module: it receives the settings, and
needs neither pydantic nor YAML.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.properties import parse_properties
from bridgehead.cluster.security_sections import SecuritySections
from bridgehead.cluster.settings import (
    CHOSEN_BY_UP,
    ClusterSettings,
    ControlSettings,
    check_settings,
    parse_overrides,
)

DOCUMENT_VARIABLE: Final = "BRIDGEHEAD_CLUSTER"
LATE: Final = "late"


def _property_text(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


PropertyText = Annotated[str, BeforeValidator(_property_text)]
Port = Annotated[int, Field(ge=1, le=65535)]


class ZooKeeperSection(BaseModel):
    """`zookeeper:` of cluster.yaml: `connect`, or the number and the heap of embedded servers."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    connect: str | None = None
    members: Literal[1, 3] = 1
    heap_mib: Annotated[int, Field(ge=64)] = 1024


class ClusterFile(SecuritySections):
    """cluster.yaml. `properties` apply to every broker, `nodes` to single brokers, by id."""

    brokers: Annotated[int, Field(ge=1, le=100)] | None = None
    ports: Literal["auto"] | Port | None = None
    """`auto`, or the base port."""
    controller: Annotated[int, Field(ge=1)] | None = None
    zookeeper: ZooKeeperSection = ZooKeeperSection()
    properties: dict[str, PropertyText] = Field(default_factory=dict)
    nodes: dict[int, dict[str, PropertyText]] = Field(default_factory=dict)


def load_cluster_file(path: Path) -> ClusterFile:
    """Return the contents of `--config`.

    Raises:
        ClusterError: the file cannot be read or is invalid.
    """
    if path.suffix == ".properties":
        return ClusterFile(properties=load_properties_file(path))
    return _cluster_file(_read(path), str(path))


def _cluster_file(text: str, source: str) -> ClusterFile:
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ClusterError(f"{source} is not YAML: {_yaml_sentence(error)}.") from None
    if document is not None and not isinstance(document, dict):
        raise ClusterError(
            f"{source} must contain keys such as `brokers: 3`, not a list or a string."
        )
    try:
        return ClusterFile.model_validate(document or {})
    except ValidationError as error:
        raise ClusterError(f"{source}: {_validation_sentence(error)}") from error


def _with_document(file: ClusterFile, text: str) -> ClusterFile:
    """Return `file` with the keys of the YAML `text`; both sets of `properties` are merged."""
    own = _cluster_file(text, DOCUMENT_VARIABLE)
    changes = {name: getattr(own, name) for name in own.model_fields_set}
    changes["properties"] = {**file.properties, **own.properties}
    return file.model_copy(update=changes)


def read_sections(document: Mapping[str, Any]) -> SecuritySections:
    """Return `listeners`, `users` and `acls`, given as Python values.

    Raises:
        ClusterError: a section is invalid; the text lists every error.
    """
    try:
        return SecuritySections.model_validate(document)
    except ValidationError as error:
        raise ClusterError(_validation_sentence(error)) from None


def load_properties_file(path: Path) -> dict[str, str]:
    """Return the keys and values of a .properties file.

    Raises:
        ClusterError: the file cannot be read, or has a malformed escape.
    """
    text = _read(path)
    try:
        return parse_properties(text)
    except ValueError as error:
        raise ClusterError(f"{path}: {error}") from error


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ClusterError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ClusterError(f"{path} cannot be read: it is not UTF-8.") from error


def load_settings(
    data_dir: Path,
    *,
    config: Path | None = None,
    overrides: Sequence[str] = (),
    brokers: int | None = None,
    base_port: int | None = None,
    ports_auto: bool = False,
    controller: int | None = None,
    zookeeper: str | None = None,
    allow_remote_plaintext: bool = False,
    seal_key: Path | None = None,
    document: str = "",
    environment: Mapping[str, str] | None = None,
    control: ControlSettings | None = None,
    advertised: str | None = None,
) -> ClusterSettings:
    """Return the settings of the command line, the environment and the `--config` file.

    `document` is YAML in the form of the file, and takes precedence over it. `environment` has the
    properties of variables: they take precedence over both. `advertised` is `late`, or one
    `host:port` for each broker.

    Raises:
        ClusterError: the file or an override is wrong, or two options contradict each other.
    """
    if base_port is not None and ports_auto:
        raise ClusterError("--base-port and --ports auto exclude each other: give one of them.")
    file = load_cluster_file(config) if config is not None else ClusterFile()
    file = _with_document(file, document) if document else file
    for node, own in file.nodes.items():
        for key in sorted(own.keys() & CHOSEN_BY_UP.keys()):
            raise ClusterError(f"{config}: `nodes.{node}` cannot set `{key}`: {CHOSEN_BY_UP[key]}.")
    shared, per_node = parse_overrides(overrides)
    if allow_remote_plaintext:
        shared["bridgehead.allow.remote.plaintext"] = "true"
    properties = file.merge_into({**file.properties, **(environment or {}), **shared})
    file_port = file.ports if isinstance(file.ports, int) else None
    settings = ClusterSettings(
        data_dir=data_dir,
        brokers=brokers or file.brokers or 3,
        base_port=base_port if base_port is not None else (None if ports_auto else file_port),
        ports_auto=ports_auto or (base_port is None and file.ports == "auto"),
        controller=controller if controller is not None else file.controller,
        zookeeper_connect=zookeeper or file.zookeeper.connect,
        zookeeper_members=file.zookeeper.members,
        zookeeper_heap_mib=file.zookeeper.heap_mib,
        properties=properties,
        node_properties={
            node: {**file.nodes.get(node, {}), **per_node.get(node, {})}
            for node in sorted({*file.nodes, *per_node})
        },
        access=file.access(properties),
        seal_key=seal_key,
        control=control,
        advertised=() if advertised in (None, LATE) else _addresses(advertised or ""),
        advertised_late=advertised == LATE,
    )
    check_settings(settings)
    return settings


def _addresses(text: str) -> tuple[str, ...]:
    return tuple(address.strip() for address in text.split(",") if address.strip())


def _yaml_sentence(error: yaml.YAMLError) -> str:
    """Describe the error and its position; omit the line, which may contain a password."""
    mark = getattr(error, "problem_mark", None)
    where = f", line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
    return f"{getattr(error, 'problem', None) or 'it cannot be read'}{where}"


def _validation_sentence(error: ValidationError) -> str:
    problems = [
        f"`{'.'.join(str(part) for part in problem['loc'])}`: {problem['msg']}"
        for problem in error.errors(include_url=False)
    ]
    return "; ".join(problems) + "."
