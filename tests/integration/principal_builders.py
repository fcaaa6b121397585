"""Principal builders of somebody's own, for nodes of a test: named by their dotted path."""

from __future__ import annotations

from dataclasses import dataclass

from broker_proxy.authentication.principals import AuthenticationContext
from cluster_model.principal import KafkaPrincipal


@dataclass(frozen=True, slots=True)
class Member(KafkaPrincipal):
    """A user with a team."""

    team: str = ""


class Teams:
    """Whoever logs in as `NAME@TEAM` is `Member:NAME`; the team travels too."""

    def build(self, context: AuthenticationContext) -> KafkaPrincipal:
        if context.authorization_id is None:
            return KafkaPrincipal("User", "ANONYMOUS")
        name, _, team = context.authorization_id.partition("@")
        if not team:
            raise ValueError("everybody has a team")
        return Member("Member", name, team=team)

    def serialize(self, principal: KafkaPrincipal) -> bytes:
        team = principal.team if isinstance(principal, Member) else ""
        return f"{principal.type}/{principal.name}/{team}".encode()

    def deserialize(self, data: bytes) -> KafkaPrincipal:
        kind, name, team = data.decode().split("/")
        return Member(kind, name, team=team)


class OtherTeams(Teams):
    """Another format, though its bytes are the same."""
