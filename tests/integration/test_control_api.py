"""The control API: HTTP, its limits and its token, and every operation on a cluster."""

from __future__ import annotations

import asyncio
import io
import json
import stat
import subprocess
import sys
import tarfile
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from bridgehead.cluster import control_socket
from bridgehead.cluster.cluster import Cluster
from bridgehead.cluster.control_socket import ControlError, serve_http
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.settings import ControlSettings
from bridgehead.control_api import http

TOKEN = "a-token-of-this-test-suite"
AUTHORIZED = f"Authorization: Bearer {TOKEN}\r\n"


async def execute(message: dict[str, Any]) -> dict[str, Any]:
    """Answer like a cluster without nodes."""
    match message["command"]:
        case "health":
            return {"ready": False, "phase": "starting"}
        case "judge":
            raise ControlError("The run is not sealed.")
        case "heal":
            raise ZeroDivisionError("a mistake")
    return {"received": message}


@asynccontextmanager
async def served() -> AsyncIterator[int]:
    """Yield the port of an API with the function `execute`."""
    server = await serve_http("127.0.0.1", 0, TOKEN, execute)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def exchange(port: int, request: bytes) -> tuple[int, Any]:
    """Send bytes; return the status and the JSON of the response."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    response = await reader.read()
    writer.close()
    head, _, body = response.partition(b"\r\n\r\n")
    assert b"Content-Length: %d" % len(body) in head
    return int(head.split()[1]), json.loads(body) if body else None


def request(line: str, body: str = "", headers: str = AUTHORIZED) -> bytes:
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    return f"{line} HTTP/1.1\r\nHost: x\r\n{headers}{length}\r\n{body}".encode()


@pytest.mark.parametrize(
    ("sent", "status", "sentence"),
    [
        (request("GET /status", headers=""), 401, "control.token"),
        (request("GET /status", headers=AUTHORIZED.replace("suite", "suitf")), 401, "Bearer"),
        (request("GET /nowhere", headers=""), 401, "token is missing"),
        (request("GET /nowhere"), 404, "no operation /nowhere: GET /openapi lists"),
        (request("GET /node/kill"), 405, "/node/kill has the method POST"),
        (request("DELETE /status"), 405, "/status has the method GET"),
        (request("POST /node/kill", '{"id": "x"}'), 400, "`id` is of type integer"),
        (request("POST /node/kill", "[1]"), 400, "one JSON object"),
        (request("POST /node/kill", "[" * 60_000), 400, "one JSON object"),
        (request("GET /logs?lines=many"), 400, "`lines` is a number"),
        (request("POST /judge"), 409, "not sealed"),
        (request("POST /heal"), 500, "Unexpected ZeroDivisionError: the"),
        (request("POST /judge", "x" * 70_000), 413, "larger than 65536 bytes"),
        (b"nonsense\r\n\r\n", 400, "not HTTP/1.1"),
        (request("GET /status", headers="X: " + "y" * 40_000 + "\r\n"), 431, "not HTTP/1.1"),
        (b"POST /judge HTTP/1.1\r\nHost: x\r\nContent-Length: 1e3\r\n\r\n", 400, "not HTTP/1.1"),
    ],
)
async def test_rejected_requests_get_a_status_and_a_sentence(
    sent: bytes, status: int, sentence: str
) -> None:
    async with served() as port:
        responded, body = await exchange(port, sent)
        assert (responded, sentence in body["error"]) == (status, True), body


async def test_requests_without_a_token_are_health_and_the_document() -> None:
    async with served() as port:
        status, body = await exchange(port, request("GET /health", headers=""))
        assert (status, body["ready"]) == (503, False)
        status, body = await exchange(port, request("GET /openapi", headers=""))
        assert (status, body["openapi"]) == (200, "3.1.0")


async def test_body_may_come_in_chunks() -> None:
    body = b'8\r\n{"id": 5\r\n1\r\n}\r\n0\r\n\r\n'
    head = f"POST /node/kill HTTP/1.1\r\nHost: x\r\n{AUTHORIZED}Transfer-Encoding: chunked\r\n\r\n"
    async with served() as port:
        status, response = await exchange(port, head.encode() + body)
        assert (status, response) == (200, {"received": {"command": "node_kill", "id": 5}})


async def test_response_to_head_has_no_body() -> None:
    async with served() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request("HEAD /status"))
        head = await reader.read()
        writer.close()
    assert head.startswith(b"HTTP/1.1 405 Method Not Allowed\r\n")
    assert head.endswith(b"\r\n\r\n")


async def test_slow_request_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_REQUEST_TIMEOUT_S", 0.1)
    async with served() as port:
        status, body = await exchange(port, b"GET /status HTTP/1.1\r\n")
        assert (status, body) == (408, {"error": "The request did not arrive within 0.1 s."})


async def test_number_of_connections_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "CONNECTIONS_MAX", 2)
    async with served() as port:
        open_ones = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        status, body = await exchange(port, request("GET /status"))
        assert (status, "try again" in body["error"]) == (503, True)
        for _, writer in open_ones:
            writer.close()
            await writer.wait_closed()
        while (await exchange(port, request("GET /status")))[0] != 200:
            await asyncio.sleep(0.01)


async def test_control_socket_needs_no_token(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    async with await control_socket.serve(path, execute):
        reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(request("POST /node/kill", '{"id": 6}', headers=""))
        assert b'{"received": {"command": "node_kill", "id": 6}}' in await reader.read()
        writer.close()


class Api:
    """A client of a cluster's control API."""

    def __init__(self, folder: Path) -> None:
        document = json.loads((folder / "cluster.json").read_text())
        self._url = document["control_url"]
        self._token = Path(document["control_token_file"]).read_text().strip()

    def raw(self, method: str, path: str, fields: dict[str, Any] | None = None) -> bytes:
        body = None if method == "GET" else json.dumps(fields or {}).encode()
        call = urllib.request.Request(
            self._url + path, body, {"Authorization": f"Bearer {self._token}"}, method=method
        )
        with urllib.request.urlopen(call, timeout=90) as response:
            return bytes(response.read())

    def get(self, path: str) -> Any:
        return json.loads(self.raw("GET", path))

    def post(self, path: str, **fields: Any) -> Any:
        return json.loads(self.raw("POST", path, fields))

    def rejection(self, path: str, **fields: Any) -> tuple[int, str]:
        with pytest.raises(urllib.error.HTTPError) as rejected:
            self.post(path, **fields)
        with closing(rejected.value):
            return rejected.value.code, json.loads(rejected.value.read())["error"]


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, new_chroot: Callable[[], str]
) -> Iterator[Cluster]:
    with Cluster(
        zookeeper=new_chroot(),
        data_dir=tmp_path_factory.mktemp("controlled"),
        properties={"bridgehead.faults.allow": "true", "zookeeper.session.timeout.ms": "2000"},
        control=ControlSettings(host="127.0.0.1", port=0),
    ) as running:
        yield running


def run_command(folder: Path, *words: str) -> str:
    command = [sys.executable, "-m", "bridgehead.cli.main", *words, "--data-dir", str(folder)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_every_operation_acts_on_the_cluster(cluster: Cluster) -> None:
    """The command line and `Cluster` see what HTTP did, because all three execute the same code."""
    api = Api(cluster.data_dir)
    token_file = cluster.data_dir / "control.token"
    assert stat.S_IMODE(token_file.stat().st_mode) == 0o600
    assert api.get("/health")["ready"] is True
    assert api.get("/client")["bootstrap_servers"] == cluster.bootstrap_servers
    killed = api.post("/controller/kill")["id"]
    second = api.post("/controller/wait", other_than=killed, timeout_s=45)["controller_id"]
    assert second == cluster.controller_id() != killed
    assert run_command(cluster.data_dir, "controller", "wait") == f"{second}\n"
    with pytest.raises(urllib.error.HTTPError, match="503"):
        api.get("/health")  # a broker is down
    assert api.rejection("/node/kill", id=killed) == (
        409,
        f"Broker {killed} is not running; `bridgehead node start {killed}` starts it.",
    )
    assert run_command(cluster.data_dir, "heal") == f"Started: {killed}.\n"
    assert api.get("/health")["ready"] is True
    assert api.post("/controller/move", id=killed)["moved"] is True
    assert cluster.controller_id() == killed
    rule = api.post("/faults/add", action="error", error="NOT_CONTROLLER", api="CreateTopics")
    assert [listed["name"] for listed in cluster.faults.list()] == [rule["name"]] * 3
    assert api.get("/faults/list")["rules"] == cluster.faults.list()
    assert api.rejection("/faults/add", action="error") == (
        409,
        "Give `error` with the action error, and only with it.",
    )
    assert api.post("/faults/remove", name=rule["name"])["removed"] == 3
    for broker, lines in api.get("/logs?lines=3")["logs"].items():
        assert run_command(cluster.data_dir, "logs", broker, "--lines", "3").splitlines() == lines
    stopped = api.post("/node/stop", id=second)
    assert cluster.brokers[second].pid == 0
    assert api.post("/node/start", id=second)["pid"] != stopped["pid"]
    assert api.rejection("/controller/wait", other_than=killed, timeout_s=0.2) == (
        409,
        f"No controller other than broker {killed} became active within 0.2 s.",
    )
    assert api.post("/upgrade") == {"id": None, "remaining": 0}  # every broker forwards already
    slow = {"action": "delay", "delay_ms": 90, "jitter_ms": 30, "count": "cluster"}
    api.post("/faults/add", **slow, probability=0.5, api="DeleteTopics")
    assert {listed["rule"]["jitter_ms"] for listed in cluster.faults.list()} == {30}
    assert api.post("/reset")["started"] == []
    assert cluster.faults.list() == []
    assert api.rejection("/judge") == (409, "The run is not sealed: POST /evidence/seal seals it.")
    addresses = {str(broker): f"localhost:{broker}" for broker in (1, 2, 3)}
    assert "does not wait for addresses" in api.rejection("/advertise", addresses=addresses)[1]


def test_sealed_run_is_judged_and_fetched(tmp_path: Path, new_chroot: Callable[[], str]) -> None:
    control = ControlSettings(host="127.0.0.1", port=0, token=TOKEN)
    with Cluster(1, zookeeper=new_chroot(), data_dir=tmp_path / "c", control=control) as cluster:
        api = Api(cluster.data_dir)
        folder = Path(api.post("/evidence/seal")["folder"])
        assert folder == cluster.evidence_dir
        assert api.post("/evidence/seal")["folder"] == str(folder)
        assert api.rejection("/controller/kill")[0] == 409
        assert api.get("/status")["phase"] == "sealed"
        document = api.post("/judge")
        command = [sys.executable, "-m", "judge", str(folder), "--json"]
        judged = subprocess.run(command, check=False, capture_output=True, text=True).stdout
        assert document == json.loads(judged)
        digest = (folder / "manifest.json").read_bytes()
        with tarfile.open(fileobj=io.BytesIO(api.raw("GET", "/evidence"))) as archive:
            file = archive.extractfile(f"evidence/{folder.name}/manifest.json")
            assert file is not None
            assert file.read() == digest
        assert list(cluster.data_dir.glob("*.tar.gz")) == []
    assert (folder / "manifest.json").read_bytes() == digest, "the run was sealed again"


def test_late_addresses_are_advertised(tmp_path: Path, new_chroot: Callable[[], str]) -> None:
    """The brokers start when the API has their addresses; Metadata has these addresses."""
    command = [
        *(sys.executable, "-m", "bridgehead.cli.main", "up", "--ports", "auto", "--brokers", "2"),
        *("--zookeeper", new_chroot(), "--data-dir", str(tmp_path / "c"), "--json"),
        *("--control", "0", "--advertised", "late", "--until-eof"),
    ]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as up:
        assert up.stdin is not None
        assert up.stdout is not None
        assert up.stderr is not None
        line = next(text for text in up.stderr if "Waiting" in text)
        api = Api.__new__(Api)
        api._url = line.split()[-1].removesuffix("/advertise")
        api._token = (tmp_path / "c" / "control.token").read_text().strip()
        assert api.get("/status")["phase"] == "waiting"
        assert api.rejection("/controller/kill") == (
            409,
            "The cluster is waiting: try again when it is ready.",
        )
        assert "one member for each broker: 1, 2" in api.rejection("/advertise", addresses={})[1]
        wrong = {"1": "localhost:1", "2": "localhost"}
        assert "HOST:PORT" in api.rejection("/advertise", addresses=wrong)[1]
        addresses = {"1": "localhost:19871", "2": "other.example:19872"}
        ready = api.post("/advertise", addresses=addresses)
        assert ready["bootstrap_servers"] == "localhost:19871,other.example:19872"
        assert "does not wait" in api.rejection("/advertise", addresses=addresses)[1]
        up.stdin.close()
        document = json.loads(up.stdout.read())
        assert up.wait(timeout=60) == 0
    assert document["bootstrap_servers"] == ready["bootstrap_servers"]
    assert not (tmp_path / "c" / "control.token").exists()


def test_port_in_use_is_an_error(cluster: Cluster, tmp_path: Path) -> None:
    port = int(Api(cluster.data_dir)._url.rpartition(":")[2])
    taken = ControlSettings(host="127.0.0.1", port=port)
    with (
        pytest.raises(ClusterError, match=f"cannot listen at 127.0.0.1:{port} .*--control"),
        Cluster(1, data_dir=tmp_path / "second", control=taken),
    ):
        pass
