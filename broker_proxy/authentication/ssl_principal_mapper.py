r"""Kafka's `ssl.principal.mapping.rules`: maps a certificate's name to a principal name.

    RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L, DEFAULT

The first rule that matches the whole name decides. DEFAULT keeps the name. The patterns are Python
regular expressions; all examples in Kafka's documentation work with them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from broker_proxy.authentication.sasl_server import SecurityConfigError

_RULE: Final = re.compile(
    r"\s*(?:(?P<default>DEFAULT)"
    r"|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<replacement>(?:\\.|[^\\/])*)/(?P<case>[LU]?))"
    r"\s*(?:,|$)"
)
_REFERENCE: Final = re.compile(r"\\(.)|\$(\d)")
# Bounds the work of a match, because clients choose the name.
NAME_CHARACTERS_MAX: Final = 4_096


class NoRuleMatchesError(Exception):
    """The certificate's name is too long, or none of the rules matches it."""


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str] | None  # None: DEFAULT
    replacement: str
    case: str


class SslPrincipalMapper:
    """The rules of one listener."""

    def __init__(self, rules: str) -> None:
        """Parse the rules. Raises SecurityConfigError if they are invalid."""
        self._rules: list[_Rule] = []
        text, at = rules.strip() or "DEFAULT", 0
        while at < len(text):
            match = _RULE.match(text, at)
            if match is None:
                raise SecurityConfigError(
                    f"ssl.principal.mapping.rules is invalid from {text[at : at + 40]!r} on: "
                    "write RULE:pattern/replacement/[LU] or DEFAULT, separated by commas."
                )
            self._rules.append(_rule(match))
            at = match.end()

    def map(self, name: str) -> str:
        """Map a certificate's name to a principal name. Raises NoRuleMatchesError."""
        if len(name) > NAME_CHARACTERS_MAX:
            raise NoRuleMatchesError("the certificate's name is too long")
        for rule in self._rules:
            if rule.pattern is None:
                return name
            match = rule.pattern.fullmatch(name)
            if match is not None:
                return _cased(_replaced(rule.replacement, match), rule.case)
        raise NoRuleMatchesError(f"no rule of ssl.principal.mapping.rules matches {name!r}")


def _rule(match: re.Match[str]) -> _Rule:
    if match["default"]:
        return _Rule(None, "", "")
    try:
        pattern = re.compile(match["pattern"])
    except re.error as error:
        raise SecurityConfigError(
            f"ssl.principal.mapping.rules: {match['pattern']!r} is not a valid pattern: {error}."
        ) from None
    return _Rule(pattern, match["replacement"], match["case"])


def _replaced(replacement: str, match: re.Match[str]) -> str:
    def fill(reference: re.Match[str]) -> str:
        if reference[2] is None:
            return reference[1]
        number = int(reference[2])
        has_group = number <= (match.re.groups or 0)
        return (match[number] or "") if has_group else reference[0]

    return _REFERENCE.sub(fill, replacement)


def _cased(name: str, case: str) -> str:
    return {"L": name.lower(), "U": name.upper()}.get(case, name)
