"""Each command in the table of examples/not_controller.md has the effect that its row shows."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.raw_client.asynchronous import AsyncConnection
from bridgehead.raw_client.codec import Body, create_topic_body, decode_json, encode_json

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| \[(.+?)\]\(.+?\) \| .+? \| `bridgehead (.+?)` \| (.+?) \|$", re.MULTILINE)
ROWS = ROW.findall((ROOT / "examples/not_controller.md").read_text(encoding="utf-8"))
TOPIC = 2


class Api(NamedTuple):
    """A request that succeeds each time; `code` reads the error code of its response."""

    key: ApiKey
    version: int
    body: Body
    code: Callable[[Any], int]


def apis() -> dict[str, Api]:
    entry = {"name": "retention.ms", "configOperation": 0, "value": "1000"}
    config = {"resourceType": TOPIC, "resourceName": "known", "configs": [entry]}
    user = {
        "name": "alice",
        "mechanism": 1,
        "iterations": 4096,
        "salt": base64.b64encode(b"salt").decode(),
        "saltedPassword": base64.b64encode(bytes(32)).decode(),
    }
    partitions = {"name": "known", "count": 2, "assignments": None}
    creation = create_topic_body("example", 1, 1) | {"validateOnly": True, "timeoutMs": 9000}
    rows = (
        Api(ApiKey.CREATE_TOPICS, 5, creation, lambda b: b["topics"][0]["errorCode"]),
        Api(
            ApiKey.CREATE_PARTITIONS,
            1,
            {"topics": [partitions], "timeoutMs": 9000, "validateOnly": True},
            lambda b: b["results"][0]["errorCode"],
        ),
        Api(
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            1,
            {"resources": [config], "validateOnly": False},
            lambda b: b["responses"][0]["errorCode"],
        ),
        Api(
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
            0,
            {"deletions": [], "upsertions": [user]},
            lambda b: b["results"][0]["errorCode"],
        ),
        Api(
            ApiKey.METADATA,
            4,
            {"topics": [{"name": "known"}], "allowAutoTopicCreation": False},
            lambda b: b["topics"][0]["errorCode"],
        ),
    )
    return {row.key.name.replace("_", "").lower(): row for row in rows}


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, new_chroot: Callable[[], str]
) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with Cluster(
        zookeeper=new_chroot(), data_dir=folder, properties={"bridgehead.faults.allow": "true"}
    ) as running:
        yield running


async def response_to(cluster: Cluster, broker: int, api: Api) -> str:
    """Return the error code of one request, or `closed`."""
    connection = await AsyncConnection.open(cluster.bootstrap_server(broker))
    try:
        response = await connection.exchange(encode_json(api.key, api.version, api.body))
        return str(api.code(decode_json(api.key, api.version, response)))
    except EOFError:
        return "closed"
    finally:
        connection.close()


async def deletion(cluster: Cluster, broker: int, number: int) -> str:
    """Create a topic and delete it through a broker; return the code of the deletion."""
    name = f"deleted-{number}"
    creation = create_topic_body(name, 1, 1) | {"timeoutMs": 9000}
    no_code = Api(ApiKey.CREATE_TOPICS, 5, creation, lambda body: body["topics"][0]["errorCode"])
    assert await response_to(cluster, broker, no_code) == "0"
    body = {"topicNames": [name], "timeoutMs": 9000}
    api = Api(ApiKey.DELETE_TOPICS, 3, body, lambda topic: topic["responses"][0]["errorCode"])
    return await response_to(cluster, broker, api)


def run_command(line: str, cluster: Cluster) -> None:
    command = [sys.executable, "-m", "bridgehead.cli.main", *line.split()]
    subprocess.run(
        [*command, "--data-dir", str(cluster.data_dir)], cwd=ROOT, check=True, capture_output=True
    )


def test_there_are_twelve_examples() -> None:
    assert len({report for report, _, _ in ROWS}) == 12


@pytest.mark.parametrize(("report", "line", "responses"), ROWS, ids=[row[0] for row in ROWS])
async def test_each_line_makes_the_brokers_response_as_the_table_says(
    cluster: Cluster, report: str, line: str, responses: str
) -> None:
    create_body = create_topic_body("known", 1, 1) | {"timeoutMs": 9000}
    await response_to(cluster, 1, Api(ApiKey.CREATE_TOPICS, 5, create_body, lambda _: 0))
    cluster.faults.remove()
    run_command(line, cluster)
    name = line.split("--api ")[1].split()[0].lower()
    seen = []
    for number, broker in enumerate((1, 2, 3) * 2):
        if name == "deletetopics":
            seen.append(await deletion(cluster, broker, number))
        else:
            seen.append(await response_to(cluster, broker, apis()[name]))
    assert " ".join(seen) == responses


async def test_the_rules_on_readmes_first_screen_act_as_it_says(cluster: Cluster) -> None:
    first_block = (ROOT / "README.md").read_text(encoding="utf-8").split("```")[1]
    rules = re.findall(r"^bridgehead (faults add .*?)(?:  +#.*)?$", first_block, re.MULTILINE)
    assert len(rules) == 2
    cluster.faults.remove()
    for rule in rules:
        run_command(rule, cluster)
    body = create_topic_body("first-screen", 1, 1) | {"timeoutMs": 9000}
    create = Api(ApiKey.CREATE_TOPICS, 5, body, lambda topics: topics["topics"][0]["errorCode"])
    assert [await response_to(cluster, 2, create) for _ in range(3)] == ["41", "0", "36"]
    names = {"topicNames": ["first-screen"], "timeoutMs": 9000}
    delete = Api(ApiKey.DELETE_TOPICS, 3, names, lambda topics: topics["responses"][0]["errorCode"])
    assert [await response_to(cluster, 2, delete) for _ in range(2)] == ["closed", "3"]
