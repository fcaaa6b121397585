"""The cluster itself, its features, quotas, credentials, transactions and logins."""

from __future__ import annotations

from typing import Any, Final

from tests.integration.conformance.case import Case, Table

MISMATCHED = (
    "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type "
    "CONTROLLER"
)
THREE = [{"brokerId": broker, "rack": f"rack-{broker}"} for broker in (1, 2, 3)]
NOT_ASKED = -2147483648
DESCRIBE_CLUSTER = Table(
    60,
    "3.17",
    (
        Case(
            "brokers",
            {"endpointType": 1},
            {
                "errorCode": 0,
                "errorMessage": None,
                "endpointType": 1,
                "controllerId": 1,
                "brokers": THREE,
                "clusterAuthorizedOperations": NOT_ASKED,
            },
        ),
        Case(
            "operations",
            {"includeClusterAuthorizedOperations": True, "endpointType": 1},
            {"clusterAuthorizedOperations": 8096},
        ),
        Case(
            "controllers",
            {"endpointType": 2},
            {"errorCode": 114, "errorMessage": MISMATCHED, "controllerId": -1, "brokers": []},
            range(1, 2),
        ),
        Case("unknown endpoint", {"endpointType": 9}, {"errorCode": 115}, range(1, 2)),
    ),
)
SOFTWARE = {"clientSoftwareName": "conformance", "clientSoftwareVersion": "1.0"}
API_VERSIONS = Table(
    18,
    "3.14",
    (
        Case("what there is", SOFTWARE, {"errorCode": 0}),
        Case(
            "without a name",
            {**SOFTWARE, "clientSoftwareName": ""},
            {"errorCode": 42, "apiKeys": []},
            range(3, 5),
        ),
        Case(
            "a strange version",
            {**SOFTWARE, "clientSoftwareVersion": "-1"},
            {"errorCode": 42, "apiKeys": []},
            range(3, 5),
        ),
    ),
)


def update(name: str, level: int = 1, downgrade: bool = False, upgrade_type: int = 1) -> Any:
    """A request of one feature."""
    feature = {
        "feature": name,
        "maxVersionLevel": level,
        "allowDowngrade": downgrade,
        "upgradeType": upgrade_type,
    }
    return {"timeoutMs": 1_000, "featureUpdates": [feature]}


def updated(name: str, text: str) -> dict[str, Any]:
    """An answer that refuses one feature."""
    return {
        "errorCode": 0,
        "errorMessage": None,
        "results": [{"feature": name, "errorCode": 42, "errorMessage": text}],
    }


UPDATE_FEATURES = Table(
    57,
    "3.13",
    (
        Case(
            "nothing asked", {"timeoutMs": 1, "featureUpdates": []}, {"errorCode": 0, "results": []}
        ),
        Case("without a name", update(""), updated("", "Feature name can not be empty.")),
        Case(
            "unknown",
            update("no-such"),
            updated(
                "no-such",
                "Could not apply finalized feature update because the provided feature is not "
                "supported.",
            ),
        ),
        Case(
            "deleted",
            update("no-such", 0, True, 2),
            updated("no-such", "Can not delete non-existing finalized feature."),
        ),
    ),
)


def quota(*entity: tuple[str, str | None], dry: bool = False, **values: float) -> dict[str, Any]:
    """A request that sets quotas of one entity."""
    return {
        "entries": [
            {
                "entity": [{"entityType": kind, "entityName": name} for kind, name in entity],
                "ops": [
                    {"key": key, "value": value, "remove": False} for key, value in values.items()
                ],
            }
        ],
        "validateOnly": dry,
    }


def altered(code: int, text: str | None) -> dict[str, Any]:
    """An answer of one entity."""
    return {"entries": [{"errorCode": code, "errorMessage": text}]}


ALTER_CLIENT_QUOTAS = Table(
    49,
    "3.9",
    (
        Case("of a user", quota(("user", "u-{n}"), producer_byte_rate=1e6), altered(0, None)),
        Case("of a client", quota(("client-id", "c-{n}"), request_percentage=50), altered(0, None)),
        Case(
            "of both",
            quota(("user", "u-{n}"), ("client-id", "c-{n}"), consumer_byte_rate=5),
            altered(0, None),
        ),
        Case(
            "of nobody special",
            quota(("user", None), consumer_byte_rate=5, dry=True),
            altered(0, None),
        ),
        Case("dry run", quota(("user", "u-{n}"), producer_byte_rate=1, dry=True), altered(0, None)),
        Case(
            "no entity",
            quota(producer_byte_rate=1),
            altered(42, "Invalid empty client quota entity"),
        ),
        Case(
            "unknown type",
            quota(("planet", "x"), producer_byte_rate=1),
            altered(42, "Unhandled client quota entity type: planet"),
        ),
        Case(
            "empty user",
            quota(("user", ""), producer_byte_rate=1),
            altered(42, "Empty user not supported"),
        ),
        Case(
            "unknown key",
            quota(("user", "u"), speed=1),
            altered(42, "Invalid configuration key speed"),
        ),
        Case(
            "a fraction",
            quota(("user", "u"), producer_byte_rate=1.5),
            altered(42, "Configuration producer_byte_rate must be a LONG value"),
        ),
        Case(
            "ip and user",
            quota(("ip", "127.0.0.1"), ("user", "u"), connection_creation_rate=1),
            altered(42, "Invalid quota entity combination, IP entity should not be used with…"),
        ),
        Case(
            "no ip",
            quota(("ip", "1.2.3.400"), connection_creation_rate=1),
            altered(42, "1.2.3.400 is not a valid IP or resolvable host."),
        ),
        Case("nothing asked", {"entries": [], "validateOnly": False}, {"entries": []}),
    ),
)


def look(*components: tuple[str, int, str | None], strict: bool = False) -> dict[str, Any]:
    """A request that filters."""
    return {
        "components": [
            {"entityType": kind, "matchType": how, "match": match}
            for kind, how, match in components
        ],
        "strict": strict,
    }


def not_found(code: int, text: str | None) -> dict[str, Any]:
    """An answer that refuses."""
    return {"errorCode": code, "errorMessage": text, "entries": None}


EXACT, DEFAULT, ANY = 0, 1, 2
DESCRIBE_CLIENT_QUOTAS = Table(
    48,
    "3.9",
    (
        Case(
            "of nobody",
            look(("user", EXACT, "none-{n}")),
            {"errorCode": 0, "errorMessage": "", "entries": []},
        ),
        Case("strict without components", look(strict=True), {"errorCode": 0, "entries": []}),
        Case(
            "a type twice",
            look(("user", ANY, None), ("user", DEFAULT, None)),
            not_found(42, "Duplicate user filter component entity type"),
        ),
        Case(
            "an empty type",
            look(("", ANY, None)),
            not_found(42, "Unexpected empty filter component entity type"),
        ),
        Case(
            "an unknown type",
            look(("planet", ANY, None)),
            not_found(35, "Custom entity type 'planet' not supported"),
        ),
        Case(
            "ip and user",
            look(("ip", ANY, None), ("user", ANY, None)),
            not_found(
                42,
                "Invalid entity filter component combination, IP filter component should not be "
                "used with user or clientId filter component.",
            ),
        ),
        Case("an unknown match", look(("user", 9, None)), not_found(-1, None)),
        Case("exactly null", look(("user", EXACT, None)), not_found(-1, None)),
    ),
)


def scram(*upsertions: tuple[str, int, int], gone: tuple[tuple[str, int], ...] = ()) -> Any:
    """A request of (user, mechanism, iterations), and of deletions."""
    return {
        "deletions": [{"name": name, "mechanism": mechanism} for name, mechanism in gone],
        "upsertions": [
            {
                "name": name,
                "mechanism": mechanism,
                "iterations": iterations,
                "salt": b"salt",
                "saltedPassword": b"salted password",
            }
            for name, mechanism, iterations in upsertions
        ],
    }


def credited(code: int, text: str, user: str = "u-{n}") -> dict[str, Any]:
    """An answer of one user."""
    return {"results": [{"user": user, "errorCode": code, "errorMessage": text}]}


TWICE = "A user credential cannot be altered twice in the same request"
ALTER_USER_SCRAM_CREDENTIALS = Table(
    51,
    "3.10",
    (
        Case("made", scram(("u-{n}", 1, 4096)), credited(0, "")),
        Case("of both mechanisms", scram(("u-{n}", 1, 4096), ("u-{n}", 2, 16384)), credited(0, "")),
        Case(
            "without a name", scram(("", 1, 4096)), credited(93, "Username must not be empty", "")
        ),
        Case(
            "unknown mechanism", scram(("u-{n}", 3, 4096)), credited(33, "Unknown SCRAM mechanism")
        ),
        Case("too few iterations", scram(("u-{n}", 1, 4095)), credited(93, "Too few iterations")),
        Case("too many", scram(("u-{n}", 1, 16385)), credited(93, "Too many iterations")),
        Case("twice", scram(("u-{n}", 1, 4096), ("u-{n}", 1, 4096)), credited(92, TWICE)),
        Case(
            "made and removed", scram(("u-{n}", 1, 4096), gone=(("u-{n}", 1),)), credited(92, TWICE)
        ),
        Case(
            "not there to remove",
            scram(gone=(("u-{n}", 1),)),
            credited(91, "Attempt to delete a user credential that does not exist"),
        ),
        Case("nothing asked", scram(), {"results": []}),
    ),
)


def users(*names: str) -> dict[str, Any]:
    """A request of users."""
    return {"users": [{"name": name} for name in names]}


def described(code: int, text: str, user: str) -> dict[str, Any]:
    """An answer of one user without credentials."""
    result = {"user": user, "errorCode": code, "errorMessage": text, "credentialInfos": []}
    return {"errorCode": 0, "errorMessage": "", "results": [result]}


DESCRIBE_USER_SCRAM_CREDENTIALS = Table(
    50,
    "3.10",
    (
        Case(
            "unknown",
            users("x-{n}"),
            described(
                91, "Attempt to describe a user credential that does not exist: x-{n}", "x-{n}"
            ),
        ),
        Case(
            "twice",
            users("x-{n}", "x-{n}"),
            described(
                92,
                "Cannot describe SCRAM credentials for the same user twice in a single request: "
                "x-{n}",
                "x-{n}",
            ),
        ),
        Case("without a name", users(""), described(91, "Username must not be empty", "")),
    ),
)
DESCRIBE_TRANSACTIONS = Table(
    65,
    "3.1",
    (
        Case(
            "not met",
            {"transactionalIds": ["{mine}", "{other}", ""]},
            {
                "transactionStates": [
                    {"transactionalId": "{mine}", "errorCode": 105, "topics": []},
                    {"transactionalId": "{other}", "errorCode": 16, "topics": []},
                    {"transactionalId": "", "errorCode": 42, "topics": []},
                ]
            },
        ),
        Case("none asked", {"transactionalIds": []}, {"transactionStates": []}),
    ),
)
LIST_TRANSACTIONS = Table(
    66,
    "3.1",
    (
        Case("all", {}, {"errorCode": 0, "unknownStateFilters": [], "transactionStates": []}),
        Case(
            "unknown states",
            {"stateFilters": ["Ongoing", "ongoing", "bogus"]},
            {"errorCode": 0, "unknownStateFilters": ["ongoing", "bogus"], "transactionStates": []},
        ),
        Case("by producer", {"producerIdFilters": [1]}, {"errorCode": 0, "transactionStates": []}),
    ),
)
SASL_HANDSHAKE = Table(
    17, "11", (Case("no login", {"mechanism": "PLAIN"}, {"errorCode": 34, "mechanisms": []}),)
)
SASL_AUTHENTICATE = Table(
    36,
    "11",
    (
        Case(
            "no login",
            {"authBytes": b"x"},
            {
                "errorCode": 34,
                "errorMessage": "SaslAuthenticate request received after successful authentication",
            },
        ),
    ),
)
TABLES: Final = (
    DESCRIBE_CLUSTER,
    API_VERSIONS,
    UPDATE_FEATURES,
    ALTER_CLIENT_QUOTAS,
    DESCRIBE_CLIENT_QUOTAS,
    ALTER_USER_SCRAM_CREDENTIALS,
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    DESCRIBE_TRANSACTIONS,
    LIST_TRANSACTIONS,
    SASL_HANDSHAKE,
    SASL_AUTHENTICATE,
)
