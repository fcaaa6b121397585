"""The pure parts of Kafka's tools: parsing, checks and formatting, without a cluster."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from bridgehead.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ApiVersionRange,
    ClusterDescription,
    ConnectionFailedError,
    DelegationToken,
    ErrorCode,
    FeatureMetadata,
    GroupDescription,
    GroupMember,
    GroupOverview,
    KafkaError,
    Node,
    NodeApiVersions,
    OffsetInfo,
    PartitionReassignment,
    PatternType,
    ResourceType,
    TopicInfo,
    TopicPartition,
    Try,
)
from bridgehead.cli.commands import build_app
from bridgehead.cli.tools import (
    acls,
    cluster,
    configs,
    delegation_tokens,
    delete_records,
    features,
    group_offsets,
    groups,
    json_files,
    leader_election,
    log_dirs,
    reassign_partitions,
    topics,
)
from bridgehead.cli.tools.tool import Options, Output, ToolError, UsageFault, with_texts
from bridgehead.exit_codes import ExitCode
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.schema_version import SCHEMA_VERSION
from cluster_model.inter_broker_protocol import LEVELS, level_of


def options(arguments: tuple[str, ...] = (), **values: object) -> Options:
    return Options({name.replace("_", "-"): value for name, value in values.items()}, arguments)


def invoke(*words: str) -> tuple[str, str, int]:
    done = CliRunner().invoke(build_app(), words, prog_name="bridgehead")
    return done.stdout, done.stderr, done.exit_code


def test_option_with_zero_or_an_empty_text_counts_as_given() -> None:
    arguments = options(partition=0, state="", config=[], force=False)
    assert arguments.used(("partition", "state", "config", "force", "missing")) == [
        "partition",
        "state",
    ]


def test_value_of_an_option_may_be_omitted() -> None:
    names = {"--state", "--type"}
    assert with_texts(["--state", "--list"], names) == ["--state=", "--list"]
    assert with_texts(["--state", "Stable", "--type"], names) == ["--state=Stable", "--type="]


def test_usage_error_is_a_sentence_and_names_help() -> None:
    """The exit code is 1, as with Kafka's tools, even for an unknown option."""
    hint = "`bridgehead topics --help` lists the options.\n"
    expected = 'Missing required argument "[topic]"\n' + hint
    assert invoke("topics", "--create") == ("", expected, ExitCode.FAILED)
    expected = "no-such is not a recognized option\n" + hint
    assert invoke("topics", "--no-such") == ("", expected, ExitCode.FAILED)


def test_usage_error_with_json_is_a_json_document() -> None:
    stdout, stderr, status = invoke("topics", "--create", "--json")
    assert json.loads(stdout) == {
        "schema_version": SCHEMA_VERSION,
        "error": 'Missing required argument "[topic]"',
    }
    assert (stderr, status) == ("", ExitCode.FAILED)


def test_command_without_a_cluster_names_the_next_step(tmp_path: Path) -> None:
    done = CliRunner().invoke(build_app(), ["topics", "--list", "--data-dir", str(tmp_path)])
    assert "name a broker with --bootstrap-server" in str(done.exception)


def test_missing_command_config_is_an_error_of_one_line(tmp_path: Path) -> None:
    path = str(tmp_path / "none.properties")
    words = ("topics", "--list", "--bootstrap-server", "127.0.0.1:1", "--command-config", path)
    stdout, _, status = invoke(*words)
    assert (stdout.count("\n"), path in stdout, status) == (1, True, ExitCode.FAILED)


def test_replica_assignment_option_is_parsed_and_checked() -> None:
    assert topics.parse_assignment("1:2,2:3") == {0: [1, 2], 1: [2, 3]}
    for text, reason in (
        ("1:1", "Partition replica lists may not contain duplicate entries: 1"),
        ("1:2,3", "Partition 1 has different replication factor: [3]"),
        ("one", "'one' is not a list of broker ids: write 1:2,2:3."),
    ):
        with pytest.raises(ToolError) as raised:
            topics.parse_assignment(text)
        assert str(raised.value) == reason


def test_topic_option_is_a_regular_expression() -> None:
    names = ["orders", "with.dot", "__consumer_offsets"]
    assert topics.matching(names, None, exclude_internal=True) == ["orders", "with.dot"]
    assert topics.matching(names, "or.*,with", exclude_internal=False) == ["orders"]
    with pytest.raises(ToolError, match="is not a regular expression"):
        topics.matching(names, "(", exclude_internal=False)


class _OverQuota:
    """An admin client that records whether each call allows retries after a quota violation."""

    def __init__(self) -> None:
        self.retries: list[bool] = []

    def _respond(self, elements: Any, *, retry_on_quota_violation: bool = True) -> dict[str, None]:
        self.retries.append(retry_on_quota_violation)
        return {"a": None}

    create_topics = delete_topics = create_partitions = _respond

    def list_topics(self, flags: object) -> dict[str, Try[TopicInfo]]:
        return self.describe_topics(["a"])

    def describe_topics(self, names: list[str]) -> dict[str, Try[TopicInfo]]:
        return {name: Try.new_value(TopicInfo(name, False, {})) for name in names}


def test_the_tool_does_not_retry_a_change_that_exceeds_the_quota() -> None:
    admin = _OverQuota()
    for action in ("create", "alter", "delete"):
        chosen: dict[str, Any] = {action: True}
        arguments = options(topic="a", partitions=2, **chosen)
        topics.TOOL.run(cast(AdminClient, admin), arguments, Output(as_json=True))
    assert admin.retries == [False, False, False]


def test_added_configs_may_contain_commas_in_brackets() -> None:
    assert configs.parse_added("a=1, b = [x,y] ,c=") == {"a": "1", "b": "x,y", "c": ""}
    with pytest.raises(ToolError, match="Invalid character found for config key: a b"):
        configs.parse_added("a b=1")


def test_a_comma_after_the_last_added_config_is_ignored() -> None:
    assert configs.parse_added("a=1,b=[x,],,") == {"a": "1", "b": "x,"}


def test_a_malformed_file_of_added_configs_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "configs.properties"
    file.write_text("a=\\user")
    arguments = options(alter=True, topic="t", add_config_file=str(file))
    with pytest.raises(ToolError, match=r"configs\.properties cannot be read: Malformed"):
        configs.TOOL.run(cast(AdminClient, None), arguments, Output(as_json=True))


def test_entity_default_belongs_to_the_entity_type_before_it() -> None:
    arguments = options(
        (
            "--entity-type",
            "users",
            "--entity-default",
            "--entity-type=clients",
            "--entity-name",
            "app",
        ),
        entity_type=["users", "clients"],
        entity_name=["app"],
        entity_default=True,
    )
    assert configs.entity_types(arguments) == ["users", "clients"]
    assert configs.entity_names(arguments) == ["", "app"]


def test_error_of_a_malformed_credential_does_not_show_its_password() -> None:
    with pytest.raises(ToolError) as raised:
        configs.parse_credential("alice", "SCRAM-SHA-256", "passwort=geheim")
    assert "geheim" not in str(raised.value)
    upsertion = configs.parse_credential("alice", "SCRAM-SHA-256", "password=a,b=c")
    assert upsertion.iterations == 4096


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (50.0, "50.0"),
        (9_999_999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12_345_678.9, "1.23456789E7"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (1e300, "1.0E300"),
        (math.inf, "Infinity"),
        (math.nan, "NaN"),
    ],
)
def test_a_quota_is_printed_in_the_format_of_a_java_double(value: float, text: str) -> None:
    assert configs.java_double(value) == text


def test_a_quota_must_be_a_number_that_java_accepts() -> None:
    assert configs.parse_quota("request_percentage", "1e3") == 1000
    with pytest.raises(ToolError, match="Cannot parse quota configuration value for a: 1_000"):
        configs.parse_quota("a", "1_000")


def test_producer_and_consumer_options_add_the_acls_that_kafkas_tool_adds() -> None:
    both = options(
        producer=True, consumer=True, topic=["t"], group=["g"], allow_principal=["User:a"]
    )
    added = {
        resource[:2]: [operation for _, _, operation, _ in entries]
        for resource, entries in acls.wanted(both).items()
    }
    assert added == {
        ("TOPIC", "t"): ["WRITE", "DESCRIBE", "CREATE", "READ"],
        ("GROUP", "g"): ["READ"],
    }


def test_acls_are_listed_sorted() -> None:
    def binding(operation: AclOperation) -> AclBinding:
        where = (ResourceType.TOPIC, "t", PatternType.LITERAL)
        return AclBinding(*where, "User:a", "*", operation, AclPermissionType.ALLOW)

    resources = acls.by_resource([binding(AclOperation.WRITE), binding(AclOperation.READ)])
    assert resources == {
        ("TOPIC", "t", "LITERAL"): [
            ("User:a", "*", "READ", "ALLOW"),
            ("User:a", "*", "WRITE", "ALLOW"),
        ]
    }


def test_confirmation_before_a_removal_names_the_resource() -> None:
    resource = ("TOPIC", "t", "LITERAL")
    assert acls.question(resource, []) == (
        "Are you sure you want to delete all ACLs for resource filter `ResourcePatternFilter("
        "resourceType=TOPIC, name=t, patternType=LITERAL)`? (y/n)"
    )


class _Tokens:
    """An admin client of a cluster with two tokens, which the broker returns in any order."""

    def describe_delegation_tokens(self, owners: list[str] | None) -> list[DelegationToken]:
        return [DelegationToken(name, b"", "User:a", None, [], 0, 0, 0) for name in ("t2", "t1")]


def test_tokens_are_described_sorted(capsys: pytest.CaptureFixture[str]) -> None:
    out = Output(as_json=False)
    delegation_tokens.TOOL.run(cast(AdminClient, _Tokens()), options(describe=True), out)
    rows = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line[:1] == "t"]
    assert rows == ["t1", "t2"]


def test_hmac_must_be_base64() -> None:
    assert delegation_tokens.parse_hmac("YQ==") == b"a"
    with pytest.raises(ToolError, match="The HMAC is not Base64"):
        delegation_tokens.parse_hmac("*")


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '"a"', '{"version": 2}', '{"version": "1"}', "[" * 100_000]
)
def test_malformed_json_file_is_an_error(text: str) -> None:
    with pytest.raises(ToolError, match=r"JSON|version"):
        json_files.parse_json(text)


@pytest.mark.parametrize(
    "partitions",
    [
        "1",
        "[1]",
        "[{}]",
        '[{"topic": 1, "partition": 0}]',
        '[{"topic": "a", "partition": "0"}]',
        '[{"topic": "a", "partition": true}]',
    ],
)
def test_malformed_partitions_are_an_error(partitions: str) -> None:
    text = f'{{"partitions": {partitions}}}'
    for parse in (
        leader_election.parse_partitions,
        delete_records.parse_offsets,
        reassign_partitions.parse_reassignment,
    ):
        with pytest.raises(ToolError, match="is not a"):
            parse(text)


A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def test_unfinished_reassignments_are_reported() -> None:
    moving = {A1: PartitionReassignment([1, 2, 3], [3], [1])}
    lines = reassign_partitions.states([(A0, [1, 2]), (A1, [2, 3])], {A0: [2, 1]}, moving)
    assert lines == [
        "Status of partition reassignment:",
        "There is no active reassignment of partition a-0, but replica set is 2,1 rather than 1,2.",
        "Reassignment of partition a-1 is still in progress.",
    ]
    assert reassign_partitions.reassignment_lines(moving) == [
        "Current partition reassignments:",
        "a-1: replicas: 1,2,3. adding: 3. removing: 1.",
    ]


def test_proposal_spreads_replicas_over_racks() -> None:
    nodes = [Node(1, "h", 1, "r1"), Node(2, "h", 1, "r1"), Node(3, "h", 1, "r2")]
    proposed = reassign_partitions.proposal({A0: [1, 2], A1: [1, 2]}, nodes)
    racks = {node.id: node.rack for node in nodes}
    assert [{racks[replica] for replica in replicas} for replicas in proposed.values()] == [
        {"r1", "r2"},
        {"r1", "r2"},
    ]
    assert len({tuple(replicas) for replicas in proposed.values()}) == 2


class _Topics:
    """An admin client of a cluster with one broker and no topics."""

    def describe_topics(self, names: list[str]) -> dict[str, Try[object]]:
        unknown = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return {name: Try.new_error(unknown) for name in names}

    def describe_cluster(self) -> ClusterDescription:
        return ClusterDescription("c", None, [Node(1, "a", 1)])

    def list_partition_reassignments(self) -> dict[TopicPartition, PartitionReassignment]:
        return {}


def test_a_file_that_names_no_topics_gives_an_empty_proposal(tmp_path: Path) -> None:
    file = tmp_path / "topics.json"
    file.write_text('{"version":1}')
    out = Output(as_json=True)
    arguments = options(generate=True, topics_to_move_json_file=str(file), broker_list="1")
    reassign_partitions.TOOL.run(cast(AdminClient, _Topics()), arguments, out)
    assert out.document["proposed"] == {"version": 1, "partitions": []}


def test_verification_shows_that_a_deleted_topic_has_no_replicas(tmp_path: Path) -> None:
    file = tmp_path / "moves.json"
    file.write_text('{"partitions":[{"topic":"gone","partition":0,"replicas":[1]}]}')
    out = Output(as_json=True)
    arguments = options(verify=True, reassignment_json_file=str(file), preserve_throttles=True)
    reassign_partitions.TOOL.run(cast(AdminClient, _Topics()), arguments, out)
    assert out.document["partitions"] == [
        "There is no active reassignment of partition gone-0, but replica set is  rather than 1."
    ]


def test_throttled_replicas_are_the_sources_and_destinations_of_the_moves() -> None:
    moves = reassign_partitions.moves({A0: [2, 3]}, {A0: [1, 2]}, {})
    assert moves == {A0: ([1, 2], [3])}
    assert reassign_partitions.throttled_replicas(moves) == {"a": ("0:1,0:2", "0:3")}


@pytest.mark.parametrize(
    "fields", ['"replicas":[true]', '"replicas":["1"]', '"replicas":[1],"log_dirs":5']
)
def test_malformed_replicas_are_an_error(fields: str) -> None:
    text = f'{{"partitions":[{{"topic":"a","partition":0,{fields}}}]}}'
    with pytest.raises(ToolError, match="is not a"):
        reassign_partitions.parse_reassignment(text)


def test_replicas_cannot_be_moved_to_a_directory() -> None:
    text = '{"partitions":[{"topic":"a","partition":0,"replicas":[1],"log_dirs":["/tmp"]}]}'
    with pytest.raises(ToolError, match='write "any" in "log_dirs"'):
        reassign_partitions.parse_reassignment(text)


def test_feature_levels_are_parsed() -> None:
    assert features.parse_levels(["a=1", "b = -2"], "upgrade") == {"a": 1, "b": -2}
    assert features.parse_levels(["a"], "disable") == {"a": 0}
    with pytest.raises(ToolError, match="unable to parse 40000 as a short"):
        features.parse_levels(["a=40000"], "upgrade")
    with pytest.raises(ToolError, match="Feature a was specified more than once"):
        features.parse_levels(["a=1", "a=2"], "upgrade")


def test_id_option_belongs_to_unregister() -> None:
    for chosen, reason in (
        (options(action="unregister"), "argument --id/-i is required"),
        (options(action="cluster-id", id=1), "unrecognized arguments: '--id'"),
        (options(id=1), "write cluster-id or unregister"),
    ):
        with pytest.raises(UsageFault, match=reason):
            cluster.check(chosen)
    cluster.check(options(action="unregister", id=0))


class _Kraft:
    """An admin client of a KRaft cluster. Broker 1 does not answer."""

    def get_all_broker_versions(self) -> dict[Node, Try[NodeApiVersions]]:
        key = int(ApiKey.UNREGISTER_BROKER)
        apis = {key: ApiVersionRange(key, "UnregisterBroker", 0, 0, None)}
        response = NodeApiVersions(apis, FeatureMetadata({}, {}, None))
        lost = ConnectionFailedError("lost")
        return {Node(1, "a", 1): Try.new_error(lost), Node(2, "b", 2): Try.new_value(response)}


def test_unregister_is_rejected_on_a_kraft_cluster() -> None:
    arguments = options(action="unregister", id=1)
    with pytest.raises(ToolError, match="This is a KRaft cluster"):
        cluster.TOOL.run(cast(AdminClient, _Kraft()), arguments, Output(as_json=True))


def test_the_tool_knows_the_metadata_versions_of_the_brokers() -> None:
    """The list is a copy, because the commands do not import the nodes' packages."""
    assert LEVELS[LEVELS.index("3.0-IV1") :] == features.METADATA_VERSIONS
    for text in ("3.0", "3.3", "3.3.2", "3.3-IV1", "3.9", "4.0-IV0"):
        name = level_of(text)
        assert name is not None
        assert features.METADATA_VERSIONS[features.metadata_level(text) - 1] == name
    for unknown in ("4.0", "2.8", "3.3-IV9", ""):
        with pytest.raises(ToolError, match=f"Unsupported metadata.version {unknown}. "):
            features.metadata_level(unknown)


def test_broker_list_option_takes_ids() -> None:
    assert log_dirs.parse_brokers("1,,2") == {1, 2}
    with pytest.raises(ToolError, match="write 1,2"):
        log_dirs.parse_brokers("one")


def test_group_table_has_the_chosen_columns() -> None:
    table = groups.group_table(
        [GroupOverview("readers", "consumer", "Stable", "classic")], types=True, states=False
    )
    assert [line.split() for line in table] == [["GROUP", "TYPE"], ["readers", "Classic"]]


def test_partitions_of_a_member_are_counted_from_its_assignment() -> None:
    """An assignment of another protocol counts as 0 partitions."""
    # A version, one topic with two partitions, and user data.
    assignment = bytes.fromhex("0000 00000001 0001 61 00000002 00000000 00000001 ffffffff")
    assert groups.partition_count(assignment) == 2
    assert groups.partition_count(b"other") == 0
    member = GroupMember("m-1", None, "app", "/127.0.0.1", b"", assignment)
    header, row = groups.member_lines("readers", [member])
    assert header.split() == ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    assert row.split() == ["readers", "m-1", "/127.0.0.1", "app", "2"]


class _Groups:
    """An admin client of a cluster with the consumer groups of `states` and a group of Connect.

    `states` maps each consumer group to its state.
    """

    def __init__(self, states: dict[str, str]) -> None:
        self.states = states

    def get_all_groups(self) -> dict[Node, Try[list[GroupOverview]]]:
        overviews = [GroupOverview(state, "consumer") for state in self.states]
        overviews.append(GroupOverview("workers", "connect"))
        return {Node(1, "a", 1): Try.new_value(overviews)}

    def get_group_information(self, group: str) -> GroupOverview:
        return GroupOverview(group, "consumer", self.states.get(group, "Empty"))

    def list_group_offsets(self, group: str) -> dict[TopicPartition, object]:
        return {}

    def describe_topics(self, names: list[str]) -> dict[str, object]:
        assert names == []
        return {}

    def list_offsets(self, timestamps: dict[TopicPartition, int]) -> dict[object, Try[OffsetInfo]]:
        return {timestamp: Try.new_value(OffsetInfo(7, -1, -1)) for timestamp in timestamps}


def test_every_topic_option_selects_partitions() -> None:
    arguments = options(topic=["a:0", "a:1"], to_latest=True)
    admin = cast(AdminClient, _Groups({}))
    assert group_offsets.new_offsets(admin, "readers", arguments) == {A0: 7, A1: 7}


def test_a_reset_of_all_groups_changes_only_consumer_groups() -> None:
    out = Output(as_json=True)
    arguments = options(reset_offsets=True, all_groups=True, topic=["a:0"], to_latest=True)
    groups.TOOL.run(cast(AdminClient, _Groups({"readers": "Empty"})), arguments, out)
    assert [group["group_id"] for group in out.document["groups"]] == ["readers"]


def test_a_group_with_members_does_not_stop_the_reset_of_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = Output(as_json=False)
    arguments = options(
        reset_offsets=True, group=["busy", "readers"], topic=["a:0"], to_latest=True
    )
    admin = _Groups({"busy": "Stable", "readers": "Empty"})
    groups.TOOL.run(cast(AdminClient, admin), arguments, out)
    assert [group["group_id"] for group in out.document["groups"]] == ["readers"]
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        "",
        "Error: Assignments can only be reset if the group 'busy' is inactive, but the current "
        "state is Stable.",
    ]
    assert lines[-1].split() == ["readers", "a", "0", "7"]


class _LostCoordinator:
    """An admin client of a cluster whose broker 3 has described a group, and then stopped."""

    def describe_cluster(self) -> ClusterDescription:
        return ClusterDescription("c", None, [Node(1, "a", 1)])

    def describe_groups(self, names: list[str]) -> dict[str, Try[GroupDescription]]:
        group = GroupDescription("readers", "consumer", "Empty", "", [], coordinator=3)
        return {"readers": Try.new_value(group)}


def test_a_group_is_described_even_if_its_coordinator_is_not_listed() -> None:
    out = Output(as_json=True)
    arguments = options(describe=True, group=["readers"], state="")
    groups.TOOL.run(cast(AdminClient, _LostCoordinator()), arguments, out)
    assert out.document["groups"][0]["coordinator"] == 3


@pytest.mark.parametrize(
    ("check", "chosen", "reason"),
    [
        (groups.check, {"list": True, "state": "Flying"}, "Invalid state list 'Flying'"),
        (configs.check, {"describe": True}, "At least one entity type must be specified"),
        (leader_election.check, {"election_type": "best"}, "Cannot parse argument 'best'"),
        (log_dirs.check, {}, "Missing required argument"),
    ],
)
def test_options_that_do_not_fit_together_are_rejected(
    check: object, chosen: dict[str, Any], reason: str
) -> None:
    assert callable(check)
    with pytest.raises(UsageFault, match=reason):
        check(options(**chosen))
