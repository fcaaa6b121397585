"""The image `bridgehead` as a service of a CI job: ports and variables, no command and no mount."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from bridgehead.cluster.ports import Ports
from tests.docker.compose import wait_until
from tests.docker.conftest import ROOT, not_tested
from tools.first_hour import TOOLS, Block, blocks

pytestmark = [pytest.mark.docker, pytest.mark.timeout(300)]
IMAGE = "bridgehead:latest"
TOKEN = "the-token-of-this-test"
HARDENED = ("--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--memory=1g")


def docker(*arguments: str) -> str:
    done = subprocess.run(["docker", *arguments], capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@contextmanager
def service(*options: str, **variables: str) -> Iterator[str]:
    """Run the image; yield the container's id, and remove the container."""
    environment = [f"--env={name}={value}" for name, value in variables.items()]
    container = docker("run", "--detach", *HARDENED, *options, *environment, IMAGE)
    try:
        yield container
    finally:
        docker("rm", "--force", "--volumes", container)


def health(container: str) -> str:
    return docker("inspect", "--format={{.State.Health.Status}}", container)


def mapped(container: str, port: int) -> int:
    return int(docker("port", container, f"{port}/tcp").splitlines()[0].rpartition(":")[2])


def post(port: int, path: str, **fields: Any) -> Any:
    body, headers = json.dumps(fields).encode(), {"Authorization": f"Bearer {TOKEN}"}
    call = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, headers)
    with urllib.request.urlopen(call, timeout=90) as response:
        return json.loads(response.read())


def admin(servers: str, **config: object) -> AdminClient:
    fresh = {"topic.metadata.refresh.interval.ms": 1000}  # docs/tools.md#clients
    return AdminClient({"bootstrap.servers": servers, **fresh, **config})


def test_image_needs_no_command_and_no_mount(images: None, mapped_ports: None) -> None:
    """The ports are mapped to themselves, as `services:` of GitHub Actions does."""
    ports = [f"--publish=127.0.0.1:{port}:{port}" for port in (9092, 9093, 9094)]
    began = time.monotonic()
    with service(
        *ports, KAFKA_NUM_PARTITIONS="7", KAFKA_ZOOKEEPER_SESSION_TIMEOUT_MS="2000"
    ) as container:
        wait_until(lambda: health(container) == "healthy", "a healthy container")
        print(f"healthy after {time.monotonic() - began:.1f} s")
        client = admin("localhost:9093")
        addresses = {
            f"{node.host}:{node.port}" for node in client.describe_cluster().result().nodes
        }
        assert addresses == {"localhost:9092", "localhost:9093", "localhost:9094"}
        resource = ConfigResource(ConfigResource.Type.BROKER, "2")
        configs = client.describe_configs([resource])[resource].result()
        assert configs["num.partitions"].value == "7"
        docker("exec", container, "bridgehead", "controller", "kill")
        wait_until(lambda: health(container) == "unhealthy", "an unhealthy container")
        docker("exec", container, "bridgehead", "heal")
        wait_until(lambda: health(container) == "healthy", "a healthy container")
        client.create_topics([NewTopic("orders", 2, 3)])["orders"].result()
        log = docker("logs", container)
        assert "Ready: 3 brokers" in log
        docker("stop", "--time=30", container)
        assert docker("inspect", "--format={{.State.ExitCode}}", container) == "0"


SHELL = ("bash", "-euo", "pipefail", "-c")


def test_client_of_each_language_works_through_mapped_ports(images: None, tmp_path: Path) -> None:
    """The programs of docs/guides/moving-controller.md, while a service's controller changes.

    A service of a CI job gets neither a command nor a mount, only ports and variables. No broker is
    killed: Docker would still accept connections for it (docs/clients.md).
    """
    guide = (ROOT / "docs/guides/moving-controller.md").read_text(encoding="utf-8")
    printed = list(blocks(guide))
    missing = {
        language: tools for language, tools in TOOLS.items() if not all(map(shutil.which, tools))
    }
    languages = [language for language in ("Python", *TOOLS) if language not in missing]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    uses = {
        language: prepared(
            [block for block in printed if block.section == language], tmp_path, environment
        )
        for language in languages
    }
    with Ports() as reserved:
        ports = [reserved.choose() for _ in range(3)]
    addresses = ",".join(f"localhost:{port}" for port in ports)
    write(tmp_path / "moving/cluster/cluster.json", json.dumps({"bootstrap_servers": addresses}))
    write(tmp_path / "moving/break-it.sh", "until [ -e moving/broken ]; do sleep 0.1; done\n")
    with (
        service(
            *(f"--publish=127.0.0.1:{port}:{9092 + number}" for number, port in enumerate(ports)),
            BRIDGEHEAD_ADVERTISED=addresses,
            KAFKA_ZOOKEEPER_SESSION_TIMEOUT_MS="2000",
        ) as container,
        ExitStack() as running,
    ):
        wait_until(lambda: health(container) == "healthy", "a healthy service")
        programs = {
            language: started(running, use, tmp_path / language, environment)
            for language, use in uses.items()
        }

        def created(language: str) -> set[str]:
            text = (tmp_path / language).read_text(encoding="utf-8")
            return set(re.findall(r"^(\S+-\d+) after", text, re.M))

        wait_until(lambda: all(map(created, languages)), "a topic of each client")
        for change in (("expire",), ("move", "2"), ("move", "1")):
            docker("exec", container, "bridgehead", "controller", *change)
            docker("exec", container, "bridgehead", "controller", "wait")
        assert all(len(created(language)) < 30 for language in languages)
        write(tmp_path / "moving/broken", "")
        assert {name: program.wait() for name, program in programs.items()} == dict.fromkeys(
            languages, 0
        )
        topics = set(admin(addresses).list_topics(timeout=30).topics)
        assert topics == set.union(*map(created, languages))
        assert len(topics) == 30 * len(languages)
    if missing:
        not_tested(f"a service with clients of other languages: no {missing}")


def started(
    running: ExitStack, commands: str, output: Path, environment: dict[str, str]
) -> subprocess.Popen[bytes]:
    """Start commands whose output goes to a file; they are killed with `running`."""
    file = running.enter_context(output.open("w"))
    program = running.enter_context(
        subprocess.Popen([*SHELL, commands], cwd=output.parent, env=environment, stdout=file)
    )
    running.callback(program.kill)
    return program


def prepared(section: list[Block], folder: Path, environment: dict[str, str]) -> str:
    """Write the files of a section and fetch packages; return the commands that use them."""
    for block in section:
        if block.file is not None:
            write(folder / block.file, block.text)
    *preparations, use = [block.text for block in section if block.language == "sh"]
    for preparation in preparations:
        subprocess.run([*SHELL, preparation], cwd=folder, env=environment, check=True)
    return use


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_commands_of_the_page_work(images: None) -> None:
    """The block of docs/container.md, as printed. README has its first line."""
    page = (ROOT / "docs/container.md").read_text(encoding="utf-8")
    (commands,) = [block.text for block in blocks(page) if block.language == "sh"]
    readme = blocks((ROOT / "README.md").read_text(encoding="utf-8"))
    assert commands.splitlines(keepends=True)[0] in [block.text for block in readme]
    try:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands],
            capture_output=True,
            check=False,
            text=True,
        )
    finally:
        subprocess.run(
            ["docker", "rm", "--force", "--volumes", "kafka"], capture_output=True, check=False
        )
    assert done.returncode == 0, done.stderr
    assert "controller  broker 3" in done.stdout


def test_late_addresses_logins_and_the_verdict(images: None) -> None:
    """What the modules for testcontainers do: mapped ports that are known only after the start."""
    cluster = {
        "listeners": {"CLIENT": {"protocol": "SASL_SSL", "host": "0.0.0.0"}},
        "users": {"carol": {"password": "carols-secret", "super": True}},
    }
    with service(
        *(f"--publish=127.0.0.1::{port}" for port in (9091, 9092, 9093)),
        BRIDGEHEAD_BROKERS="2",
        BRIDGEHEAD_ADVERTISED="late",
        BRIDGEHEAD_CONTROL_TOKEN=TOKEN,
        BRIDGEHEAD_CLUSTER=json.dumps(cluster),
    ) as container:
        control = mapped(container, 9091)
        wait_until(lambda: _phase(control) == "waiting", "a waiting cluster")
        assert health(container) != "healthy"
        addresses = {
            str(broker): f"127.0.0.1:{mapped(container, 9091 + broker)}" for broker in (1, 2)
        }
        servers = post(control, "/advertise", addresses=addresses)["bootstrap_servers"]
        assert servers == ",".join(addresses.values())
        request = urllib.request.Request(
            f"http://127.0.0.1:{control}/client", headers={"Authorization": f"Bearer {TOKEN}"}
        )
        with urllib.request.urlopen(request) as response:
            described = json.load(response)
        login = {
            "security.protocol": described["security_protocol"],
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "carol",
            "sasl.password": "carols-secret",
            "ssl.ca.pem": described["certificate_authority"],
        }
        client = admin(servers, **login)
        client.create_topics([NewTopic("orders", 2, 2)])["orders"].result()
        log = docker("logs", container)
        assert "carols-secret" not in log
        assert TOKEN not in log
        processes = docker("exec", container, "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
        assert "carols-secret" not in processes
        post(control, "/evidence/seal")
        assert post(control, "/judge")["verdict"] == "PASS"


def _phase(control: int) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{control}/health", timeout=2) as response:
            return str(json.load(response)["phase"])
    except urllib.error.HTTPError as not_ready:
        with closing(not_ready):
            return str(json.load(not_ready)["phase"])
    except OSError:
        return "closed"


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"BRIDGEHEAD_CONTROL_TOKEN": "short"}, "BRIDGEHEAD_CONTROL_TOKEN is too weak"),
        ({"BRIDGEHEAD_CLUSTER": "brokers: many"}, "BRIDGEHEAD_CLUSTER: `brokers`"),
        ({"BRIDGEHEAD_ADVERTISED": "a:1,b:2"}, "3 brokers advertise 3 addresses"),
        ({"KAFKA_BROKER_ID": "4"}, "KAFKA_* variables cannot set `broker.id`"),
    ],
)
def test_wrong_variable_ends_the_container_with_a_sentence(
    images: None, variables: dict[str, str], sentence: str
) -> None:
    environment = [f"--env={name}={value}" for name, value in variables.items()]
    done = subprocess.run(
        ["docker", "run", "--rm", *HARDENED, *environment, IMAGE],
        capture_output=True,
        check=False,
        text=True,
    )
    assert (done.returncode, sentence in done.stderr) == (4, True), done.stderr
