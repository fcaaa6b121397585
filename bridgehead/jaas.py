"""Kafka's `sasl.jaas.config`: one login module, a flag, and options.

org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="alice-secret";
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_TOKEN: Final = re.compile(
    r"""\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([^\s="';]+)|([=;]))"""
)


class JaasError(ValueError):
    """The text is malformed. The message names the property and shows no value."""


@dataclass(frozen=True, slots=True)
class JaasConfig:
    """A login module and its options. The options contain passwords, so the repr omits them."""

    module: str
    options: Mapping[str, str] = field(repr=False)


def parse_jaas(text: str, name: str) -> JaasConfig:
    """Parse one login module.

    Raises:
        JaasError: the property `name` is malformed; the message does not show its value.
    """
    tokens = _tokens(text, name)
    if len(tokens) < 3 or tokens[1].lower() not in _FLAGS or tokens[-1] != ";":
        raise JaasError(
            f'{name} must have a login module, the word required, options key="value", and a '
            "semicolon."
        )
    options, rest = {}, tokens[2:-1]
    while rest:
        if len(rest) < 3 or rest[1] != "=" or rest[0] in ("=", ";"):
            raise JaasError(
                f'{name} has an option that is not of the form key="value" '
                "(its value is not shown, it may be a secret)."
            )
        options[rest[0]] = rest[2]
        rest = rest[3:]
    return JaasConfig(tokens[0], options)


def _tokens(text: str, name: str) -> list[str]:
    tokens, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise JaasError(f"{name} has an unbalanced quotation mark.")
        double, single, word, mark = match.groups()
        quoted = double if double is not None else single
        if quoted is not None:
            tokens.append(re.sub(r"\\(.)", r"\1", quoted))
        else:
            tokens.append(word or mark)
        at = match.end()
    return tokens
