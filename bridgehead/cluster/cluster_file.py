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
from pydantic_core import ErrorDetails

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
from bridgehead.suggestions import did_you_mean

DOCUMENT_VARIABLE: Final = "BRIDGEHEAD_CLUSTER"
LATE: Final = "late"


def _property_text(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


PropertyText = Annotated[str, BeforeValidator(_property_text)]
Port = Annotated[int, Field(ge=1, le=65535)]
_FILE_BYTES_MAX: Final = 4 << 20
_MERGED_MAX: Final = 10_000  # keys of one mapping
_PROBLEMS_SHOWN: Final = 10


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # PyYAML has no types
    """Bounds what merge keys (`<<`) produce; merges of merges would grow exponentially."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        super().flatten_mapping(node)
        if len(node.value) > _MERGED_MAX:
            raise yaml.constructor.ConstructorError(
                problem=f"a mapping has more than {_MERGED_MAX:,} keys",
                problem_mark=node.start_mark,
            )


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
        document = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    except yaml.YAMLError as error:
        raise ClusterError(f"{source} is not YAML: {_yaml_sentence(error)}.") from None
    except RecursionError:
        raise ClusterError(f"{source} cannot be read: it is nested too deeply.") from None
    except ValueError:  # a date such as 2026-99-99, or an integer of more than 4,300 digits
        raise ClusterError(
            f"{source} cannot be read: a number or a date in it is invalid. Put texts in quotes."
        ) from None
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
    cluster_file = _cluster_file(text, DOCUMENT_VARIABLE)
    changes = {name: getattr(cluster_file, name) for name in cluster_file.model_fields_set}
    changes["properties"] = {**file.properties, **cluster_file.properties}
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
        with path.open("rb") as file:
            data = file.read(_FILE_BYTES_MAX + 1)
        if len(data) > _FILE_BYTES_MAX:
            raise ClusterError(f"{path} has more than {_FILE_BYTES_MAX:,} bytes.")
        return data.decode()
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
    stop_with_pid: int | None = None,
    ttl_s: float | None = None,
    adopt: bool = False,
    read_only: bool = False,
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
    file = _load_file(config, document)
    shared, per_node = parse_overrides(overrides)
    if allow_remote_plaintext:
        shared["bridgehead.allow.remote.plaintext"] = "true"
    properties = file.merge_into({**file.properties, **(environment or {}), **shared})
    connect = _used(zookeeper or file.zookeeper.connect, adopt=adopt, read_only=read_only)
    settings = ClusterSettings(
        data_dir=data_dir,
        brokers=brokers or file.brokers or 3,
        **_ports(file, base_port, ports_auto=ports_auto),
        controller=controller if controller is not None else file.controller,
        zookeeper_connect=None if read_only else connect,
        adopt=adopt,
        copied_zookeeper=connect if read_only else None,
        zookeeper_members=file.zookeeper.members,
        zookeeper_heap_mib=file.zookeeper.heap_mib,
        properties=properties,
        node_properties=_merged(file.nodes, per_node),
        access=file.access(properties),
        seal_key=seal_key,
        stop_with_pid=stop_with_pid,
        ttl_s=ttl_s,
        control=control,
        advertised=() if advertised in (None, LATE) else _addresses(advertised or ""),
        advertised_late=advertised == LATE,
    )
    check_settings(settings)
    return settings


def migration_overrides(voters: str | None) -> tuple[str, ...]:
    """Return overrides for brokers that migrate to these KRaft controllers; none if it is None.

    `voters` is as in controller.quorum.voters.
    """
    if voters is None:
        return ()
    return (
        "zookeeper.metadata.migration.enable=true",
        "controller.listener.names=CONTROLLER",
        f"controller.quorum.voters={voters}",
    )


def _load_file(config: Path | None, document: str) -> ClusterFile:
    file = load_cluster_file(config) if config is not None else ClusterFile()
    file = _with_document(file, document) if document else file
    for node, properties_of_node in file.nodes.items():
        for key in sorted(properties_of_node.keys() & CHOSEN_BY_UP.keys()):
            raise ClusterError(f"{config}: `nodes.{node}` cannot set `{key}`: {CHOSEN_BY_UP[key]}.")
    return file


def _ports(file: ClusterFile, base_port: int | None, *, ports_auto: bool) -> dict[str, Any]:
    """Return `base_port` and `ports_auto` of the settings; options take precedence."""
    file_port = file.ports if isinstance(file.ports, int) else None
    return {
        "base_port": base_port if base_port is not None else (None if ports_auto else file_port),
        "ports_auto": ports_auto or (base_port is None and file.ports == "auto"),
    }


def _merged(
    first: Mapping[int, Mapping[str, str]], second: Mapping[int, Mapping[str, str]]
) -> dict[int, dict[str, str]]:
    """Return the properties of each node; those of `second` take precedence."""
    return {
        node: {**first.get(node, {}), **second.get(node, {})} for node in sorted({*first, *second})
    }


def _used(connect: str | None, *, adopt: bool, read_only: bool) -> str | None:
    if connect is None and (adopt or read_only):
        raise ClusterError("--adopt and --read-only need --zookeeper HOST:PORT/chroot.")
    if adopt and read_only:
        raise ClusterError("--adopt and --read-only exclude each other: give one of them.")
    return connect


def _addresses(text: str) -> tuple[str, ...]:
    return tuple(address.strip() for address in text.split(",") if address.strip())


def _yaml_sentence(error: yaml.YAMLError) -> str:
    """Describe the error and its position; omit the line, which may contain a password."""
    mark = getattr(error, "problem_mark", None)
    where = f", line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
    return f"{getattr(error, 'problem', None) or 'it cannot be read'}{where}"


def _validation_sentence(error: ValidationError) -> str:
    problems = [
        f"`{'.'.join(str(part) for part in problem['loc'])}`: {problem['msg']}."
        f"{_suggestion(problem)}"
        for problem in error.errors(include_url=False)
    ]
    more = len(problems) - _PROBLEMS_SHOWN
    return " ".join(problems[:_PROBLEMS_SHOWN] + ([f"and {more} more."] if more > 0 else []))


def _suggestion(problem: ErrorDetails) -> str:
    """Return ` Did you mean KEY?` for an unknown key at the top of the file, or else ""."""
    if problem["type"] != "extra_forbidden" or len(problem["loc"]) > 1:
        return ""
    return did_you_mean(problem["loc"][0], ClusterFile.model_fields)
