"""`bridgehead faults add | list | remove`: make selected requests fail, to test clients."""

from __future__ import annotations

import textwrap
from typing import Annotated, Any

import typer

from bridgehead.cli.options import (
    DEFAULT_DATA_DIR,
    DataDirOption,
    JsonOption,
    duration_seconds,
    print_json,
    say,
)

app = typer.Typer(no_args_is_help=True, help="Make selected requests fail.")

_WIDTH = 80


ActionArgument = Annotated[
    str,
    typer.Argument(metavar="ACTION", help="error, delay, drop, close, duplicate or truncate."),
]
ApiOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Only requests of this API, such as CreateTopics."),
]
VersionsOption = Annotated[
    str | None, typer.Option(metavar="N[-M]", help="Only requests of these versions.")
]
BrokerOption = Annotated[
    int | None, typer.Option(metavar="ID", help="Only requests at this broker.", show_default="all")
]
ClientIdOption = Annotated[
    str | None, typer.Option(metavar="ID", help="Only requests of this client id.")
]
PrincipalOption = Annotated[
    str | None, typer.Option(metavar="TYPE:NAME", help="Only requests of this principal.")
]
TopicOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="Only requests that name this topic.")
]
ErrorOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="With `error`: the error code.")
]
DelayOption = Annotated[
    str | None,
    typer.Option(metavar="DURATION", help="With `delay`: how long, such as 5s, 500ms or 1m."),
]
JitterOption = Annotated[
    str | None,
    typer.Option(metavar="DURATION", help="With `delay`: at most this much longer or shorter."),
]
SideOption = Annotated[
    str,
    typer.Option(metavar="SIDE", help="`client`, or `envelope` (between broker and controller)."),
]
PhaseOption = Annotated[
    str,
    typer.Option(metavar="PHASE", help="`request`: before the execution; `response`: after it."),
]
NthOption = Annotated[
    int, typer.Option(metavar="N", min=1, help="Act from the N-th matching request on.")
]
TimesOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=0,
        help="Act on N requests; 0 means all.",
        show_default="1, or 0 with --probability",
    ),
]
CountOption = Annotated[
    str,
    typer.Option(
        metavar="WHO", help="Who counts N: `broker` (each its own) or `cluster` (all together)."
    ),
]
ProbabilityOption = Annotated[
    float | None,
    typer.Option(metavar="P", help="Act on each of these requests with probability P."),
]


@app.command()
def add(
    action: ActionArgument,
    *,
    api: ApiOption = None,
    versions: VersionsOption = None,
    broker: BrokerOption = None,
    client_id: ClientIdOption = None,
    principal: PrincipalOption = None,
    topic: TopicOption = None,
    error: ErrorOption = None,
    delay: DelayOption = None,
    jitter: JitterOption = None,
    side: SideOption = "client",
    phase: PhaseOption = "request",
    nth: NthOption = 1,
    times: TimesOption = None,
    count: CountOption = "broker",
    probability: ProbabilityOption = None,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
) -> None:
    """Add a rule, and print its name.

    The brokers need bridgehead.faults.allow=true.
    """
    from bridgehead.cluster.client import ControlClient
    from bridgehead.cluster.faults import Faults

    settings: dict[str, Any] = {
        "api": api,
        "versions": versions,
        "client_id": client_id,
        "principal": principal,
        "topic": topic,
        "error": error,
        "delay_ms": None if delay is None else round(duration_seconds(delay) * 1000),
        "jitter_ms": None if jitter is None else round(duration_seconds(jitter) * 1000),
        "times": times,
        "probability": probability,
    }
    fields = {name: value for name, value in settings.items() if value is not None}
    faults = Faults(ControlClient(data_dir))
    say(faults.add(action, broker=broker, side=side, phase=phase, nth=nth, count=count, **fields))


@app.command("list")
def list_rules(
    *, data_dir: DataDirOption = DEFAULT_DATA_DIR, json_output: JsonOption = False
) -> None:
    """List the rules, and how often each has acted."""
    from bridgehead.cluster.client import ControlClient
    from bridgehead.cluster.faults import Faults

    rules = Faults(ControlClient(data_dir)).list()
    if json_output:
        print_json({"rules": rules})
        return
    for listed_rule in rules:
        rule = " ".join(f"{name}={value}" for name, value in listed_rule["rule"].items())
        say(
            f"{listed_rule['name']} at broker {listed_rule['broker']}: {listed_rule['hits']} hits, "
            f"{listed_rule['matches']} matches"
        )
        say(textwrap.fill(rule, _WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 4))
    if not rules:
        say("There are no fault rules.")


@app.command()
def remove(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The rule.", show_default="all rules")
    ] = None,
    *,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
) -> None:
    """Remove one rule, or all rules, from all brokers."""
    from bridgehead.cluster.client import ControlClient
    from bridgehead.cluster.faults import Faults

    removed = Faults(ControlClient(data_dir)).remove(name)
    say(f"Rules removed: {removed}. A rule counts once for each of its brokers.")
