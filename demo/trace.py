"""`python -m demo.trace`: the steps of requests through the brokers, live or from evidence.

Without REQUEST, these are the steps of the last request that changes metadata. DIR is a cluster's
data directory (its last run is read) or the folder of one run. Exit code: 0, or 3 if there is no
such request.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from bridgehead.exit_codes import ExitCode
from bridgehead.kafka_wire.apis import API_SPECS
from bridgehead.suggestions import did_you_mean
from demo.console import table_of
from demo.request_trace import Event, api_name, printable, read_events, requests_of, steps_of
from judge.evidence.run_files import EvidenceError
from judge.evidence.run_lookup import find_runs

_POLL_S: Final = 0.5


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the steps; return the exit code."""
    parser = argparse.ArgumentParser(prog="bridgehead trace", description=__doc__)
    parser.add_argument("request", nargs="?")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--api")
    parser.add_argument("--client-id")
    parser.add_argument("--last", type=int, default=1)
    parser.add_argument("--follow", action="store_true")
    options = parser.parse_args(arguments)
    keys = {spec.name: int(key) for key, spec in API_SPECS.items()}
    if options.api is not None and options.api not in keys:
        hint = did_you_mean(options.api, keys)
        print(f"There is no API {options.api!r} (docs/apis.md lists them).{hint}", file=sys.stderr)
        return ExitCode.USAGE
    console = Console()
    seen: set[str] = set()
    while True:
        try:
            events = list(read_events(find_runs(options.folder)[-1]))
        except EvidenceError as error:
            print(error, file=sys.stderr)
            return ExitCode.CANNOT_RUN
        of_api = None if options.api is None else keys[options.api]
        received = requests_of(events, api_key=of_api, client_id=options.client_id)
        if options.request is not None:
            received = [
                event
                for event in events
                if event["kind"] == "request_received" and event["request_id"] == options.request
            ]
        if options.follow and not seen:  # Only requests that come from now on.
            seen = {"", *(event["request_id"] for event in received)}
        done = _ended(events)
        new = [e for e in received if e["request_id"] not in seen and e["request_id"] in done]
        for event in new if options.follow else received[-options.last :]:
            _show(console, events, event)
            seen.add(event["request_id"])
        if not options.follow:
            break
        time.sleep(_POLL_S)
    if not received:
        print("The run has no such request.", file=sys.stderr)
    return ExitCode.OK if received else ExitCode.UNDECIDED


def _ended(events: Sequence[Event]) -> set[str]:
    return {str(event["request_id"]) for event in events if event["kind"] == "responded"}


def _show(console: Console, events: Sequence[Event], received: Event) -> None:
    """Print one request: who sent it, and its steps."""
    client = received["client_id"] or "a client without id"
    api = f"{api_name(received['api_key'])} v{received['api_version']}"
    print(f"{api}, request {received['request_id']}")
    print(printable(f"  of {client}, {received['principal']} at {received['client_host']}"))
    table = table_of("ms", "broker", "step")
    for step in steps_of(events, str(received["request_id"])):
        table.add_row(f"{step.at_ms:7.2f}", step.node, Text(step.text))
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
