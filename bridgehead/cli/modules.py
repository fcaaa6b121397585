"""Commands that run a module of the application tree, such as `judge`, `demo` and `pipeline`."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Annotated

import typer

from bridgehead.cli.options import (
    DEFAULT_DATA_DIR,
    JsonOption,
    SealKeyOption,
    UnsealedOption,
    run_module,
    seal_options,
)

evidence_app = typer.Typer(no_args_is_help=True, help="Seal and import the evidence of runs.")
demo_app = typer.Typer(no_args_is_help=True, help="Run a demonstration. It takes a few seconds.")

DataDir = Annotated[
    Path,
    typer.Option(
        metavar="DIR", help="The cluster's folder; the data of an earlier demo is deleted."
    ),
]
chaos_app = typer.Typer(no_args_is_help=True, help="Run scenarios under faults, and judge them.")
pipeline_app = typer.Typer(
    no_args_is_help=True, help="Compute tables, verdicts and a report with Spark."
)


SpecOption = Annotated[
    bool,
    typer.Option(
        "--spec", help="Check with TLC against the specification (docs/specification.md)."
    ),
]


def judge(
    evidence: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder of a cluster or of one run.")
    ],
    *,
    seal_key: SealKeyOption = None,
    unsealed: UnsealedOption = False,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a report with timelines to FILE, without Spark."),
    ] = None,
    json_output: JsonOption = False,
    spec: SpecOption = False,
) -> None:
    """Judge a cluster's last run.

    Exit code 0: all expected properties hold. 1: one is violated. 3: undecided. With --spec: 0: the
    specification explains every forwarded request. 1: one is not explained. 4: TLC cannot run.
    """
    from bridgehead.cluster.errors import ClusterError

    if not evidence.is_dir():
        raise ClusterError(f"{evidence} is not a folder: give the --data-dir of the cluster.")
    options = seal_options(seal_key, unsealed=unsealed)
    if html is not None:
        options.append(f"--html={html}")
    options += ["--spec"] if spec else []
    run_module("judge", str(evidence), *options, *(["--json"] if json_output else []))


def trace(
    request: Annotated[
        str | None,
        typer.Argument(
            metavar="[REQUEST]",
            help="The request's id in the evidence; default: the last one that changes metadata.",
        ),
    ] = None,
    *,
    data_dir: Annotated[
        Path,
        typer.Option(
            "--data-dir",
            envvar="BRIDGEHEAD_DATA_DIR",
            metavar="DIR",
            help="The folder of a cluster, which may be running, or of one run.",
        ),
    ] = DEFAULT_DATA_DIR,
    api: Annotated[
        str | None, typer.Option(metavar="NAME", help="The last request of this API.")
    ] = None,
    client_id: Annotated[
        str | None, typer.Option(metavar="ID", help="The last request of this client id.")
    ] = None,
    last: Annotated[int, typer.Option(metavar="N", min=1, help="The last N such requests.")] = 1,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Show requests as they end, until Ctrl-C.")
    ] = False,
) -> None:
    """Show the steps of a request, broker by broker.

    Exit code 3: the run has no such request.
    """
    run_module(
        *("demo.trace", "--folder", str(data_dir), "--last", str(last)),
        *([] if request is None else [request]),
        *([] if api is None else ["--api", api]),
        *([] if client_id is None else [f"--client-id={client_id}"]),
        *(["--follow"] if follow else []),
    )


@evidence_app.command()
def kafka(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder for the run.")],
    *,
    logs: Annotated[
        list[Path],
        typer.Option(
            metavar="[ID=]FOLDER",
            help="A real broker's log folder, with kafka-request.log; once for each broker.",
        ),
    ],
    zookeeper_logs: Annotated[
        list[Path] | None,
        typer.Option(metavar="FOLDER", help="The transaction log folder of a ZooKeeper member."),
    ] = None,
    seal_key: SealKeyOption = None,
) -> None:
    """Import a real Kafka's logs as a sealed run.

    `bridgehead pipeline run` judges the run.
    """
    options = [part for log in logs for part in ("--logs", str(log))]
    options += [part for log in zookeeper_logs or () for part in ("--zookeeper-logs", str(log))]
    run_module("judge.evidence", "kafka", str(folder), *options, *seal_options(seal_key))


@evidence_app.command()
def seal(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder of a cluster or of one run.")
    ],
    *,
    zookeeper_logs: Annotated[
        list[Path] | None,
        typer.Option(
            "--zookeeper-logs",
            metavar="FOLDER",
            help="Transaction log folder of an external ZooKeeper; once for each member.",
        ),
    ] = None,
    seal_key: SealKeyOption = None,
) -> None:
    """Write a run's manifest, with digests of all files.

    `bridgehead down` seals the run. Use this command if the supervisor was killed or the
    sealing failed.
    """
    from bridgehead.cluster.data_directory import DataDirectory
    from bridgehead.cluster.errors import ClusterError

    if not folder.is_dir():
        raise ClusterError(f"{folder} is not a folder: give the --data-dir of the cluster.")
    for root in (folder, folder.parent.parent):
        if DataDirectory(root).is_claimed():
            raise ClusterError(f"A cluster is running in {root}: `bridgehead down` seals its run.")
    options = [
        part for log in zookeeper_logs or () for part in ("--zookeeper-logs", str(log.resolve()))
    ]
    run_module("judge.evidence", "seal", str(folder), *options, *seal_options(seal_key))


@demo_app.command()
def policies() -> None:
    """Show what a topic policy of your own allows and rejects.

    It also shows what happens if the policy hangs.
    """
    run_module("demo.policies")


@demo_app.command()
def dialects() -> None:
    """Compare responses in the KIPs' drafted protocol and in Kafka's shipped one."""
    run_module("demo.dialects")


@demo_app.command()
def authorization(*, data_dir: DataDir = Path(".demo-authorization")) -> None:
    """Show allowed, denied and forged requests, and a wrong certificate."""
    run_module("demo.authorization", "--data-dir", str(data_dir))


@pipeline_app.command()
def run(
    *,
    evidence: Annotated[Path, typer.Option(metavar="DIR", help="A cluster's folder, or one run.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder for tables and report.")],
    seal_key: SealKeyOption = None,
    unsealed: UnsealedOption = False,
    master: Annotated[
        str, typer.Option(metavar="URL", help="Spark's master: local[*] or spark://HOST:PORT.")
    ] = "local[*]",
    driver_host: Annotated[
        str,
        typer.Option(
            metavar="HOST",
            help="The address at which the driver listens, for Spark workers on other hosts.",
        ),
    ] = "127.0.0.1",
    conf: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A Spark setting; may be repeated."),
    ] = None,
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Memory of the driver and of each executor.")
    ] = "4g",
    tables: Annotated[
        bool,
        typer.Option("--tables", help="Write the tables even if the evidence is small."),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show stack traces.")] = False,
) -> None:
    """Judge all runs of a folder.

    Exit code 0: all expected properties hold. 1: one is violated. 3: undecided.
    """
    run_module(
        *("pipeline", "run", "--evidence", str(evidence), "--out", str(out)),
        *("--master", master, "--driver-host", driver_host, "--memory", memory),
        *(f"--conf={setting}" for setting in conf or []),
        *seal_options(seal_key, unsealed=unsealed),
        *(["--tables"] if tables else []),
        *(["--debug"] if debug else []),
    )


@pipeline_app.command()
def watch(
    *,
    evidence: Annotated[Path, typer.Option(metavar="DIR", help="A cluster's folder, or one run.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder for the watch's state.")],
    once: Annotated[
        bool, typer.Option("--once", help="Read the existing lines, then end.")
    ] = False,
    json_output: Annotated[
        bool, typer.Option("--json", help="Print a JSON document for each batch.")
    ] = False,
    every: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="The time between two batches.")
    ] = 2.0,
    debug: Annotated[bool, typer.Option("--debug", help="Show stack traces.")] = False,
) -> None:
    """Show rates, open requests and latencies of a cluster's last run.

    The command ends when the cluster stops. It gives no verdict.
    """
    run_module(
        *("pipeline", "watch", "--evidence", str(evidence), "--out", str(out)),
        *("--every", str(every)),
        *(["--once"] if once else []),
        *(["--json"] if json_output else []),
        *(["--debug"] if debug else []),
    )


@pipeline_app.command()
def trends(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Folders that `pipeline run` wrote.")
    ],
    *,
    page: Annotated[Path, typer.Option(metavar="FILE", help="The page to write.")] = Path(
        "trends.html"
    ),
) -> None:
    """Compare many runs on one page, and list the runs whose verdicts or times changed."""
    run_module("pipeline", "trends", "--page", str(page), *map(str, folders))


@chaos_app.command("list")
def list_scenarios(
    word: Annotated[
        str, typer.Argument(metavar="[WORD]", help="A word of the name or the aim; default: all.")
    ] = "",
    *,
    theme: Annotated[
        str | None,
        typer.Option(
            metavar="THEME", help="pauses, kills, links, zookeeper, clocks-and-disks or load."
        ),
    ] = None,
    tier: Annotated[
        str | None, typer.Option(metavar="TIER", help="`local` or `simulated`.")
    ] = None,
) -> None:
    """List the scenarios by theme, and three to start with."""
    of_theme = [] if theme is None else ["--theme", theme]
    run_module("chaos", "list", word, *of_theme, *([] if tier is None else ["--tier", tier]))


def _complete_scenarios(incomplete: str) -> list[str]:
    """Return the names of the scenarios that begin with `incomplete`, for the shell."""
    from bridgehead.application import module_command, module_environment

    command = module_command("chaos", "list", "--names")
    listed = subprocess.run(
        command, env=module_environment(), capture_output=True, text=True, check=False
    )
    return [name for name in ["all", *listed.stdout.split()] if name.startswith(incomplete)]


@chaos_app.command("run")
def run_scenarios(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...", help="Scenarios, or `all`.", autocompletion=_complete_scenarios
        ),
    ],
    *,
    seed: Annotated[int, typer.Option(metavar="N", help="The first seed.")] = 1,
    seeds: Annotated[
        int, typer.Option(metavar="N", min=1, help="Number of seeds; each seed is one run.")
    ] = 1,
    tier: Annotated[
        str,
        typer.Option(
            metavar="TIER",
            help="`local`: real processes and a real ZooKeeper; `simulated`: one process with "
            "virtual time.",
        ),
    ] = "local",
    shrink: Annotated[
        bool,
        typer.Option("--shrink", help="Print a smaller scenario for each failed simulated run."),
    ] = False,
    bugs: Annotated[
        str,
        typer.Option(metavar="BUG,...", help="Bugs to seed into nodes (docs/kafka-bugs.md)."),
    ] = "",
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A property of all brokers, instead of the scenario's value; can be repeated.",
        ),
    ] = None,
    spec: SpecOption = False,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder for evidence and results.")
    ] = Path(".chaos"),
) -> None:
    """Run scenarios and judge each run.

    Exit code 0: every run passed. 1: a run failed or hung. 3: undecided.
    """
    run_module(
        *("chaos", "run", *names, "--seed", str(seed), "--seeds", str(seeds)),
        *("--tier", tier, "--bugs", bugs, "--out", str(out)),
        *(argument for property_ in properties or [] for argument in ("--set", property_)),
        *(["--shrink"] if shrink else []),
        *(["--spec"] if spec else []),
    )


@chaos_app.command("explore")
def explore_schedules(
    *,
    deviations: Annotated[
        int, typer.Option(metavar="N", min=0, help="Deviations from the default order in a run.")
    ] = 2,
    histories: Annotated[
        int, typer.Option(metavar="N", min=1, help="Stop after so many different histories.")
    ] = 1_000,
    bugs: Annotated[
        str,
        typer.Option(metavar="BUG,...", help="Bugs to seed into nodes (docs/kafka-bugs.md)."),
    ] = "",
    random: Annotated[
        int | None,
        typer.Option(metavar="SEED", help="Draw as many schedules instead of trying all."),
    ] = None,
    replay: Annotated[
        str | None,
        typer.Option(metavar="SCHEDULE", help="Run only this schedule, such as 2:lost,5:killed."),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder for evidence.")] = Path(
        ".chaos"
    )
    / "explore",
) -> None:
    """Try all orders of the messages of one request and one failover.

    Exit code 0: no history violates a property. 1: one does.
    """
    run_module(
        *("chaos", "explore", "--deviations", str(deviations), "--histories", str(histories)),
        *("--bugs", bugs, "--out", str(out)),
        *([] if random is None else ["--random", str(random)]),
        *([] if replay is None else ["--replay", replay]),
    )
