"""Users' SCRAM credentials, updated by ZooKeeper's change notifications.

A user cannot log in if the credential was deleted or is unreadable.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from cluster_model.scram import MECHANISM_NAMES, ScramCredential, parse_credential
from cluster_model.znodes.entity_names import desanitize

_log = logging.getLogger(__name__)
_NUMBERS: Final = {name: number for number, name in MECHANISM_NAMES.items()}


class UserCredentialCache:
    """The SCRAM credentials of all users. Used from one thread."""

    def __init__(self) -> None:
        self._credentials: dict[str, Mapping[int, ScramCredential]] = {}

    def scram_credential(self, user: str, mechanism: int) -> ScramCredential | None:
        return self._credentials.get(user, {}).get(mechanism)

    def replace_all(self, users: Mapping[str, Mapping[str, str]]) -> None:
        """Replace all users' stored configs; the keys of `users` are the names in ZooKeeper."""
        self._credentials = {}
        for stored_name, configs in users.items():
            self.update(stored_name, configs)

    def update(self, stored_name: str, configs: Mapping[str, str]) -> None:
        """Replace one user's stored configs. The default user and user-client pairs are ignored."""
        user = desanitize(stored_name)
        if user is None or "/" in stored_name:
            return
        credentials: dict[int, ScramCredential] = {}
        for name, number in _NUMBERS.items():
            if name in configs:
                try:
                    credentials[number] = parse_credential(configs[name])
                except ValueError as error:
                    _log.error("the %s credential of %r: %s", name, user, error)
        if credentials:
            self._credentials[user] = credentials
        else:
            self._credentials.pop(user, None)
