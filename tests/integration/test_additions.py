"""One of each kind is added to a copy of the project, in as many files as CONTRIBUTING.md says.

Tests, golden histories and generated pages are not counted. The line in a literal registry is:
it is named separately, because the registry of a kind is a file that lists every one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@dataclass(frozen=True)
class Addition:
    """New files, and changes of existing files: a text and what replaces it.

    `counted`: the number of files to write or change. `registry`: a file that only gets the name of
    the new module.
    """

    counted: int
    new: Mapping[str, str]
    changed: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    registry: str | None = None


def before(text: str, inserted: str) -> tuple[str, str]:
    """Return the change that inserts lines before a text."""
    return text, inserted + text


ADMIN_API: Final = Addition(
    counted=4,
    new={
        "bridgehead/kafka_wire/messages/unregister_broker.py": '''"""UnregisterBroker, key 64."""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT16, INT32, STRING, wire


@dataclass(slots=True)
class UnregisterBrokerRequest:
    """The request."""

    broker_id: int = wire(INT32)


@dataclass(slots=True)
class UnregisterBrokerResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32)
    error_code: int = wire(INT16)
    error_message: str | None = wire(STRING, nullable="0+")
''',
        "controller/apis/unregister_broker.py": '''"""UnregisterBroker, key 64."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.unregister_broker import UnregisterBrokerResponse
from cluster_model.image import MetadataImage
from controller.apis.base import AdminApi, Decided, Decision, Outcome, RequestContext, Results


class UnregisterBroker(AdminApi):
    """Decides UnregisterBroker requests."""

    api_key = ApiKey.UNREGISTER_BROKER

    def decide(
        self,
        context: RequestContext,
        request: Any,
        image: MetadataImage,
        committed: Mapping[str, Outcome],
    ) -> Decision:
        alive = request.broker_id in image.brokers
        error = ErrorCode.INVALID_REQUEST if alive else ErrorCode.BROKER_ID_NOT_REGISTERED
        return Decision([Decided(str(request.broker_id), Outcome(error, f"broker {alive}"))])

    def response(self, context: RequestContext, request: Any, results: Results) -> Any:
        (outcome,) = results.outcomes.values()
        return UnregisterBrokerResponse(0, outcome.error, outcome.message)
''',
        "tests/integration/test_unregister_broker.py": '''"""The API is forwarded."""

from bridgehead.raw_client.blocking import Connection
from tests.integration.conftest import StartCluster


def test_a_broker_that_is_not_the_controller_forwards_it(start_cluster: StartCluster) -> None:
    cluster = start_cluster(brokers=2, controller=1)
    with Connection(cluster.bootstrap_server(2)) as connection:
        versions = connection.call(18, 0, {})
        assert {"apiKey": 64, "minVersion": 0, "maxVersion": 0} in versions["apiKeys"]
        gone = connection.call(64, 0, {"brokerId": 9})
        alive = connection.call(64, 0, {"brokerId": 2})
    assert (gone["errorCode"], gone["errorMessage"]) == (102, "broker False")
    assert (alive["errorCode"], alive["errorMessage"]) == (42, "broker True")
''',
    },
    changed={
        "bridgehead/kafka_wire/apis.py": (
            ("K.BROKER_HEARTBEAT, K.UNREGISTER_BROKER,", "K.BROKER_HEARTBEAT,"),
            before(
                "    _forward(K.UPDATE_FEATURES,",
                '    _forward(K.UNREGISTER_BROKER, 0, 0, whole(), rights="ALTER CLUSTER"),\n',
            ),
        ),
        "judge/rights.py": (
            before("    67: ", '    64: (("Alter", "Cluster"),),  # UnregisterBroker\n'),
        ),
    },
)
PROPERTY: Final = Addition(
    counted=1,
    registry="judge/properties/__init__.py",
    new={
        "judge/properties/registrations_have_epochs.py": '''"""Each registration has an epoch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from judge import sql
from judge.history import History, row_of
from judge.property import PropertySpec, Violation

SPEC: Final = PropertySpec(
    id="K9",
    name="registrations_have_epochs",
    statement="each registration of a broker has an epoch",
    witnesses=("events",),
    row="registrations",
    key="<incarnation>",
)


def check(history: History) -> Iterator[Violation | None]:
    """Judge every registration."""
    for event in history.of_kind["broker_registered"]:
        sentence = f"{event['incarnation']}: epoch {event['broker_epoch']}"
        violation = SPEC.violation(event["incarnation"], [row_of(event)], sentence)
        yield violation if event["broker_epoch"] <= 0 else None


INPUTS: Final = ("silver/broker_registered",)
SQL: Final = f"""
SELECT run, CASE WHEN broker_epoch <= 0 THEN incarnation END AS key,
  array({sql.row_of("broker_registered")}) AS rows,
  concat(incarnation, ': epoch ', broker_epoch) AS sentence
FROM broker_registered
"""
''',
        "tests/golden/registrations_have_epochs.yaml": """registered:
  story: A broker registers with an epoch.
  like: forwarded_creation
  changes:
    - in: 2/b
      at: session_opened
      after: [{broker_registered: {broker_epoch: 3, incarnation: b, session: "0x2"}}]
  expect: {run: PASS, K9: [PASS, 1]}

registered_without_epoch:
  story: A broker registers without an epoch.
  like: forwarded_creation
  changes:
    - in: 2/b
      at: session_opened
      after: [{broker_registered: {broker_epoch: 0, incarnation: q, session: "0x2"}}]
  expect: {run: FAIL, K9: [FAIL, 1, [q]]}
  sentences:
    - "K9: q: epoch 0"
""",
    },
    changed={
        "judge/properties/__init__.py": (
            before(
                "    rejected_write_has_no_effect,\n    replayed",
                "    registrations_have_epochs,\n",
            ),
            before("    faults_take_effect,\n)\nPROPERTY", "    registrations_have_epochs,\n"),
        ),
        "tests/golden/forwarded_creation.yaml": (
            ("    K7: [PASS, 2]\n", "    K7: [PASS, 2]\n    K9: [NODATA, 0]\n"),
        ),
    },
)
SCENARIO: Final = Addition(
    counted=1,
    new={},
    changed={
        "chaos/scenarios/pauses.py": (
            before(
                "SCENARIOS: Final",
                """SHORT_PAUSE_AT_LAST = Scenario(
    name="short_pause_at_last",
    aim="A short pause after many topics causes no election.",
    bug="false failovers: a controller resigns although its session is alive",
    catches=Catch(bugs=("resigns_when_late",), found_by=("elections; expected 0 to 0",)),
    workload=TOPICS,
    steps=(Step(fault=PAUSE_CONTROLLER, after=120, hold=Sessions(0.3)),),
    expects=Expectation(elections=(0, 0), open_max=0),
)

""",
            ),
            before("    CANARY,\n)", "    SHORT_PAUSE_AT_LAST,\n"),
        )
    },
)
FAULT: Final = Addition(
    counted=3,
    new={
        "tests/golden/faults_of_registrations.yaml": """broker_registers_again:
  story: The harness restarted broker 2, which registered again.
  like: zookeeper_leader_lost
  changes:
    - {in: up/h, at: fault_injected, with: {action: restart_broker, target: "2"}}
    - {in: up/h, at: fault_healed, with: {action: restart_broker, target: "2"}}
    - in: 2/b
      at: disconnected
      before:
        - broker_registered: {broker_epoch: 7, incarnation: b, session: "0x2", at_ms: 15}
  expect: {run: PASS, T1: [PASS, 1], K9: [PASS, 1]}

broker_does_not_register_again:
  story: The harness recorded that it restarted broker 2, which did not register again.
  like: zookeeper_leader_lost
  changes:
    - {in: up/h, at: fault_injected, with: {action: restart_broker, target: "2"}}
    - {in: up/h, at: fault_healed, with: {action: restart_broker, target: "2"}}
  expect: {run: NODATA, T1: [NODATA, 1, [harness-up/h/1]]}
  sentences:
    - "T1: restart_broker of 2 had no effect that another witness shows"
""",
    },
    changed={
        "chaos/faults/kills.py": (
            before(
                "FAULTS: Final",
                """
@asynccontextmanager
async def _restart_broker(target: Target, record: Record) -> AsyncIterator[None]:
    controller = await target.controller()
    broker = next(broker for broker in target.brokers if broker != controller)
    with record(broker):
        await target.stop(broker)
        await target.start(broker)
        yield


RESTART_BROKER = Fault(
    name="restart_broker",
    does="A broker that is not the controller stops and starts.",
    action="restart_broker",
    effect="broker_registered_again",
    inject=_restart_broker,
)

""",
            ),
            before("    KILL_CONTROLLER,\n", "    RESTART_BROKER,\n"),
        ),
        "judge/effects/processes.py": (
            before(
                '    Effect(\n        name="clock_moved",',
                """    Effect(
        name="broker_registered_again",
        actions=("restart_broker",),
        check=_event_during_work("broker_registered"),
        reads=("broker_registered",),
        sql=_sql_of_event_during_work("broker_registered"),
    ),
""",
            ),
        ),
        "chaos/scenarios/kills.py": (
            before("from chaos.scenario import", "from chaos.faults.kills import RESTART_BROKER\n"),
            before(
                "SCENARIOS: Final",
                """RESTARTED_BROKER = Scenario(
    name="restarted_broker",
    aim="Clients of the other brokers notice nothing of a broker's restart.",
    bug="KAFKA-1096: a restarted broker is taken for the controller",
    catches=Catch(bugs=("resigns_early",), found_by=("elections; expected 0 to 0",)),
    workload=TOPICS,
    steps=(Step(fault=RESTART_BROKER),),
    expects=Expectation(elections=(0, 0)),
)

""",
            ),
            before("    KILL_IN_LARGE_REQUEST,\n", "    RESTARTED_BROKER,\n"),
        ),
    },
)
BUG: Final = Addition(
    counted=1,
    new={},
    changed={
        "chaos/bugs/terms.py": (
            before(
                '    Bug(\n        name="resigns_early",',
                """    Bug(
        name="resigns_early_once_more",
        does="A controller resigns one second after its election, as another bug does.",
        apply=part("controller", _ResignsEarly),
        found_by="the number of elections",
    ),
""",
            ),
        )
    },
)
TABLE: Final = Addition(
    counted=1,
    registry="pipeline/run.py",
    new={
        "pipeline/gold/registrations.py": '''"""How often each broker registered."""

from __future__ import annotations

from typing import Final

from pipeline.query import query
from pipeline.table import Table

REGISTRATIONS: Final = Table(
    name="gold/registrations",
    inputs=("silver/broker_registered",),
    schema="run STRING, node STRING, registrations BIGINT",
    build=query(
        "SELECT run, node, count(*) AS registrations FROM broker_registered GROUP BY run, node"
    ),
)
''',
        "tests/integration/test_registrations.py": '''"""A new table has the rows of its query."""

from pathlib import Path

from pipeline.evidence import find_runs
from pipeline.run import Pipeline
from pipeline.session import open_session
from tests.integration.pipeline_runs import expand_all


def test_rows(tmp_path: Path) -> None:
    spark = open_session("local[2]", small=True, memory="1g")
    try:
        names = ["registered", "registered_without_epoch", "broker_registers_again"]
        runs = find_runs(expand_all(names, tmp_path / "evidence"))
        pipeline = Pipeline(spark, runs, tmp_path / "out", stored=False)
        pipeline.make()
        rows = pipeline.read("gold/registrations").collect()
        violated = {row["key"] for row in pipeline.read("gold/violations").collect()}
        verdicts = pipeline.verdicts()
    finally:
        spark.stop()
    assert sorted((row["node"], row["registrations"]) for row in rows) == [("2", 1)] * 3
    assert violated == {"q"}
    judged = {run: row for run, rows in verdicts.items() for row in rows if row.property == "K9"}
    assert sorted(row.verdict for row in judged.values()) == ["FAIL", "PASS", "PASS"]
''',
    },
    changed={
        "pipeline/run.py": (
            before("    rejections,\n", "    registrations,\n"),
            before("    rejections.REJECTIONS,\n", "    registrations.REGISTRATIONS,\n"),
        )
    },
)
COMMAND: Final = Addition(
    counted=2,
    new={
        "bridgehead/cli/ports.py": '''"""`bridgehead ports`: print ports."""

from __future__ import annotations

from bridgehead.cli.options import say


def ports() -> None:
    """Print the ports of the default configuration."""
    say("9092, 9093 and 9094")
''',
    },
    changed={
        "bridgehead/cli/commands.py": (
            before("from bridgehead.cli import (", "from bridgehead.cli import ports\n"),
            before("    version,\n)", "    ports.ports,\n"),
        )
    },
)

ADDITIONS: Final = {
    "admin API": ADMIN_API,
    "property": PROPERTY,
    "scenario": SCENARIO,
    "fault with a new effect": FAULT,
    "seeded bug": BUG,
    "table": TABLE,
    "command": COMMAND,
}
# What the copy must then pass: the new behaviour, and the tests of the registries.
CHECKS: Final = (
    "tests/integration/test_unregister_broker.py",
    "tests/integration/test_registrations.py",
    # Histories with gaps also get a verdict of the new property, which is not added to them here.
    *(
        f"tests/unit/judge/test_golden_histories.py::test_golden_history_gets_its_verdicts[{name}]"
        for name in (
            "forwarded_creation",
            "registered",
            "registered_without_epoch",
            "broker_registers_again",
            "broker_does_not_register_again",
        )
    ),
    "tests/unit/judge/test_rights.py",
    "tests/unit/chaos/test_scenarios.py",
)


def counted(addition: Addition) -> set[str]:
    """Return the files that are neither tests nor the registry."""
    return {
        path
        for path in (*addition.new, *addition.changed)
        if not path.startswith("tests/") and path != addition.registry
    }


@pytest.mark.parametrize("kind", ADDITIONS)
def test_an_addition_touches_few_files(kind: str) -> None:
    addition = ADDITIONS[kind]
    assert len(counted(addition)) == addition.counted
    assert not [path for path in addition.new if (ROOT / path).exists()]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tracked files, with all additions."""
    folder = tmp_path_factory.mktemp("copy") / "project"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in tracked.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    for addition in ADDITIONS.values():
        for name, text in addition.new.items():
            (folder / name).write_text(text, encoding="utf-8")
        for name, changes in addition.changed.items():
            _change(folder / name, changes)
    return folder


def _change(path: Path, changes: tuple[tuple[str, str], ...]) -> None:
    text = path.read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1, f"{path.name}: {old!r}"
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


def run_in(folder: Path, *arguments: str) -> str:
    """Return what a command of the copy prints; it must succeed."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_copy_has_them_all(copy: Path) -> None:
    run_in(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", *CHECKS)


@pytest.mark.parametrize("scenario", ["short_pause_at_last", "restarted_broker"])
def test_the_copy_plays_the_new_scenarios(copy: Path, scenario: str) -> None:
    seeds = ("--seed", "7", "--seeds", "2")
    out = ("--tier", "simulated", "--out", str(copy / "out"))
    shown = run_in(copy, "-m", "chaos", "run", scenario, *seeds, *out)
    assert "2 of 2 runs passed" in shown


def test_the_copy_has_the_new_command_and_the_new_bug(copy: Path) -> None:
    assert "9092, 9093 and 9094" in run_in(copy, "-m", "bridgehead", "ports")
    listed = "from chaos.bugs import BUGS; print([bug.name for bug in BUGS])"
    assert "resigns_early_once_more" in run_in(copy, "-c", listed)
