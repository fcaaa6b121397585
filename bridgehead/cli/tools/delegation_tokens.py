"""`bridgehead delegation-tokens`: kafka-delegation-tokens.sh."""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from bridgehead.cli.tools.tool import (
    Option,
    Options,
    Output,
    Tool,
    ToolError,
    UsageFault,
    forbid,
    need,
    number,
    text,
    texts,
)

if TYPE_CHECKING:
    from bridgehead.admin import AdminClient, DelegationToken

_ACTIONS: Final = ("create", "renew", "expire", "describe")
_ROW: Final = "{:<15} {:<30} {:<15} {:<15} {:<25} {:<15} {:<15} {:<15}"
_HEADER: Final = _ROW.format(
    *("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE")
)
_PERIODS: Final = ("max-life-time-period", "renew-time-period", "expiry-time-period")


def check(options: Options) -> None:
    """Raise UsageFault if the options break the rules of Kafka's DelegationTokenCommandOptions."""
    if len(options.used(_ACTIONS)) != 1:
        raise UsageFault(
            "Command must include exactly one action: --create, --renew, --expire or --describe"
        )
    life, renewal, expiry = _PERIODS
    if options.has("create"):
        need(options, life)
        forbid(options, "create", "hmac", renewal, expiry)
    if options.has("renew"):
        need(options, "hmac", renewal)
        forbid(options, "renew", "renewer-principal", life, expiry, "owner-principal")
    if options.has("expire"):
        need(options, "hmac", expiry)
        forbid(options, "expire", life, renewal, "owner-principal")
    forbid(options, "describe", *_PERIODS, "hmac")


def token_lines(tokens: Iterable[DelegationToken]) -> list[str]:
    """Return the table of tokens. Kafka's tool prints an empty line before each row."""
    lines = [_HEADER]
    for token in tokens:
        stamps = (
            token.issue_timestamp_ms,
            token.expiry_timestamp_ms,
            token.max_timestamp_ms,
        )
        row = _ROW.format(
            token.token_id,
            base64.b64encode(token.hmac).decode(),
            token.owner,
            token.requester or "",
            listed(token.renewers),
            *map(date, stamps),
        )
        lines += ["", row]
    return lines


def listed(principals: Iterable[str]) -> str:
    """Return principals as Java prints a list.

    >>> listed(["User:alice", "User:bob"])
    '[User:alice, User:bob]'
    """
    return f"[{', '.join(principals)}]"


def date(timestamp_ms: int) -> str:
    """Return a time in the local time zone, to the minute."""
    return time.strftime("%Y-%m-%dT%H:%M", time.localtime(timestamp_ms / 1000))


def parse_hmac(text: str) -> bytes:
    """Decode the HMAC of --hmac. Raises ToolError."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ToolError("The HMAC is not Base64: copy it from the output of --create.") from None


def _run(admin: AdminClient, options: Options, out: Output) -> None:
    [action] = options.used(_ACTIONS)
    {"create": _create, "renew": _renew, "expire": _expire, "describe": _describe}[action](
        admin, options, out
    )


def _create(admin: AdminClient, options: Options, out: Output) -> None:
    renewers = [principal.strip() for principal in options.texts("renewer-principal")]
    life = options.number("max-life-time-period")
    out.line(
        f"Calling create token operation with renewers :{listed(renewers)} , "
        f"max-life-time-period :{life}"
    )
    owners = options.texts("owner-principal")
    token = admin.create_delegation_token(
        renewers, owners[0].strip() if owners else None, -1 if life is None else life
    )
    out.line(f"Created delegation token with tokenId : {token.token_id}\n")
    _show([token], out)


def _show(tokens: list[DelegationToken], out: Output) -> None:
    for line in token_lines(tokens):
        out.line(line)
    out.result(
        tokens=[
            {**token._asdict(), "hmac": base64.b64encode(token.hmac).decode()} for token in tokens
        ]
    )


def _renew(admin: AdminClient, options: Options, out: Output) -> None:
    period, hmac = options.number("renew-time-period"), options.needed("hmac")
    out.line(f"Calling renew token operation with hmac :{hmac} , renew-time-period :{period}")
    expiry = admin.renew_delegation_token(parse_hmac(hmac), -1 if period is None else period)
    out.line(f"Completed renew operation. New expiry date : {date(expiry)}")
    out.result(expiry_timestamp_ms=expiry)


def _expire(admin: AdminClient, options: Options, out: Output) -> None:
    period, hmac = options.number("expiry-time-period"), options.needed("hmac")
    out.line(f"Calling expire token operation with hmac :{hmac} , expire-time-period :{period}")
    expiry = admin.expire_delegation_token(parse_hmac(hmac), -1 if period is None else period)
    out.line(f"Completed expire operation. New expiry date : {date(expiry)}")
    out.result(expiry_timestamp_ms=expiry)


def _describe(admin: AdminClient, options: Options, out: Output) -> None:
    owners = [principal.strip() for principal in options.texts("owner-principal")]
    out.line(
        f"Calling describe token operation for owners: {listed(owners)}"
        if owners
        else "Calling describe token operation for current user."
    )
    tokens = sorted(admin.describe_delegation_tokens(owners or None), key=lambda t: t.token_id)
    out.line(f"Total number of tokens : {len(tokens)}")
    _show(tokens, out)


TOOL: Final = Tool(
    name="delegation-tokens",
    help="Create, renew, expire and describe tokens.\n\nWorks like kafka-delegation-tokens.sh.",
    options=(
        Option("create", "Create a token for --owner-principal; default: the user that logs in."),
        Option("renew", "Renew a token."),
        Option("expire", "Set the remaining lifetime of a token."),
        Option("describe", "Describe tokens."),
        texts("owner-principal", "PRINCIPAL", "The owner, such as User:alice."),
        texts("renewer-principal", "PRINCIPAL", "Another principal that can renew the token."),
        number(
            "max-life-time-period",
            "MS",
            "With --create: the maximum lifetime; -1: the broker's maximum.",
        ),
        number(
            "renew-time-period",
            "MS",
            "With --renew: the new lifetime from now; -1: the broker's default.",
        ),
        number(
            "expiry-time-period",
            "MS",
            "With --expire: the remaining lifetime; -1: the token expires now.",
        ),
        text("hmac", "HMAC", "The token's HMAC, in Base64."),
    ),
    run=_run,
    check=check,
    failure="{java}",
)
