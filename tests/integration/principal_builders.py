"""Custom principal builders that test nodes load by dotted path."""

from __future__ import annotations

from dataclasses import dataclass

from broker_proxy.authentication.principals import AuthenticationContext
from cluster_model.principal import KafkaPrincipal


@dataclass(frozen=True, slots=True)
class Member(KafkaPrincipal):
    """A user with a team."""

    team: str = ""


class Teams:
    """Maps the user `NAME@TEAM` to `Member:NAME`. The serialized principal includes the team."""

    def build(self, context: AuthenticationContext) -> KafkaPrincipal:
        if context.authorization_id is None:
            return KafkaPrincipal("User", "ANONYMOUS")
        name, _, team = context.authorization_id.partition("@")
        if not team:
            raise ValueError("the team is missing")
        return Member("Member", name, team=team)

    def serialize(self, principal: KafkaPrincipal) -> bytes:
        team = principal.team if isinstance(principal, Member) else ""
        return f"{principal.type}/{principal.name}/{team}".encode()

    def deserialize(self, data: bytes) -> KafkaPrincipal:
        kind, name, team = data.decode().split("/")
        return Member(kind, name, team=team)


class OtherTeams(Teams):
    """Another class that serializes principals like `Teams`."""
