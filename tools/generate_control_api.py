"""Generates docs/control-api.md from the operations of the control API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bridgehead.control_api.http import BODY_BYTES_MAX, CONNECTIONS_MAX
from bridgehead.control_api.openapi import ERRORS
from bridgehead.control_api.operations import OPERATIONS, TOKEN_CHARACTERS_MIN, Field, Operation
from tools.generate_reference import MARK

_PAGE: Final = """\
# The control API

{mark}

Programs in any language control a running cluster over HTTP: they kill, move and freeze the
controller, add fault rules, wait for a new controller, and get the verdict. The command line, the
class `Cluster` and this API execute the same code. The path of an operation has the words of the
command: `bridgehead controller kill` is `POST /controller/kill`. [clients](clients.md) has modules
for Java, Go and Node that use the API.

## Start it

`bridgehead up --control 9091` serves the API at `127.0.0.1:9091`; port 0 means a free port. The
image [bridgehead](container.md) serves it at port 9091. `cluster.json` and the output of `up
--json` have the URL (`control_url`).

Each request needs a token, except `GET /health` and `GET /openapi`. `BRIDGEHEAD_CONTROL_TOKEN` sets
the token, which has at least {token_min} characters. Without this variable the token is random. It
is in the file `control.token` in the cluster's folder, which only the owner can read;
`cluster.json` names the file (`control_token_file`). The API has no TLS: keep it on loopback, or in
a network that you trust.

```sh
export PATH="$PWD/.venv/bin:$PATH" BRIDGEHEAD_DATA_DIR=controlled/cluster
bridgehead up --detach --ports auto --control 0 --override zookeeper.session.timeout.ms=2000
url=$(sed -n 's/.*"control_url": "\\(.*\\)",/\\1/p' controlled/cluster/cluster.json)
token="Authorization: Bearer $(cat controlled/cluster/control.token)"
curl -fsS -H "$token" -X POST $url/controller/kill
curl -fsS -H "$token" $url/controller/wait -d '{{"timeout_s": 60}}'
curl -fsS -H "$token" -X POST $url/heal
curl -fsS -H "$token" -X POST $url/evidence/seal
curl -fsS -H "$token" -X POST $url/judge | grep '"verdict": "PASS"' > controlled/verdict.json
curl -fsS -H "$token" $url/evidence -o controlled/evidence.tar.gz
bridgehead down
rm -r controlled
```

On the [control sockets](guides/fault-rules.md#over-http) the same requests need no token, because
only the owner of the folder can open the sockets.

## Requests and responses

The fields of a POST are a JSON object in the body; those of a GET are in the query. The response is
a JSON object. `GET /openapi` returns the OpenAPI document, from which generators make clients.

An error is `{{"error": "…"}}` with one sentence:

| status | meaning |
|---|---|
{errors}
| 500 | There is an error in Bridgehead. |

A body has at most {body_max} bytes, and at most {connections_max} connections are open at a time.
The API answers one request per connection.

## Operations

{operations}
"""


def control_api_page() -> str:
    """Return the page."""
    return _PAGE.format(
        mark=MARK,
        token_min=TOKEN_CHARACTERS_MIN,
        body_max=BODY_BYTES_MAX,
        connections_max=CONNECTIONS_MAX,
        errors="\n".join(f"| {status} | {meaning} |" for status, meaning in ERRORS.items()),
        operations="\n\n".join(_section(operation) for operation in OPERATIONS),
    )


def _section(operation: Operation) -> str:
    return "\n".join(_lines(operation))


def _lines(operation: Operation) -> Iterator[str]:
    yield f"### {operation.method} {operation.path}"
    yield ""
    yield operation.does
    if operation.fields:
        yield from ("", "| field | type | meaning |", "|---|---|---|")
        yield from (_row(field) for field in operation.fields)
    if operation.returns:
        yield from ("", "| response | type | meaning |", "|---|---|---|")
        for name, (kind, meaning) in operation.returns.items():
            yield f"| `{name}` | {kind} | {meaning} |"


def _row(field: Field) -> str:
    meaning = field.meaning
    if field.choices:
        meaning += f" One of {', '.join(f'`{choice}`' for choice in field.choices)}."
    if field.required:
        meaning += " Required."
    elif field.default is not None:
        meaning += f" Default: {field.default}."
    return f"| `{field.name}` | {field.kind} | {meaning} |"
