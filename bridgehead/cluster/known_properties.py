"""Names the properties that neither Kafka nor Bridgehead reads, with a suggestion.

Kafka ignores such names, because plug-ins may read them; a misspelled name then has no effect. The
names are in the tables of `cluster_model/configs`, which this module reads as data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from bridgehead.application import application_root
from bridgehead.suggestions import did_you_mean

_TABLES: Final = ("broker_configs/broker_configs.tsv", "bridgehead_configs.tsv")
# The properties of AclAuthorizer, which is a plug-in of Kafka and has no table.
_OF_AUTHORIZER: Final = frozenset({"super.users", "allow.everyone.if.no.acl.found"})
# Kafka's plug-ins and our policies read every name with these prefixes.
_PREFIXES: Final = ("bridgehead.policy.", "rsm.config.", "rlmm.config.")
_LISTENER: Final = re.compile(r"listener\.name\.[^.]+\.(?:(?:plain|scram-sha-\d+|oauthbearer)\.)?")


def unknown_properties(names: Iterable[str]) -> list[str]:
    """Return a sentence for each name that is in no table, in their order."""
    read_names = _read_names()
    sentences = []
    for name in names:
        plain = _LISTENER.sub("", name, count=1)
        if plain not in read_names and not plain.startswith(_PREFIXES):
            sentences.append(
                f"Nothing reads the property {name!r}.{did_you_mean(plain, read_names)}"
            )
    return sentences


def _read_names() -> frozenset[str]:
    folder = application_root() / "cluster_model" / "configs"
    lines = (line for table in _TABLES for line in (folder / table).read_text().splitlines()[1:])
    return _OF_AUTHORIZER | frozenset(line.partition("\t")[0] for line in lines)
