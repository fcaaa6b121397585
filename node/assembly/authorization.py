"""The node's authorizer, loaded from the configuration and bound to the current ACLs."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Mapping
from typing import Final

from bridgehead.authorizer import Authorizer, Operation, Requester, ResourceType
from bridgehead.kafka_wire.api_key import ApiKey
from broker_proxy.client_request import AuthorizeFor, ClientRequest
from cluster_model.acls.authorization import (
    CLUSTER_NAME,
    Audit,
    Authorize,
    BindAuthorize,
    bind_authorize,
    no_authorizer,
)
from cluster_model.acls.authorizer import CLASS_NAME, AclAuthorizer
from cluster_model.acls.bindings import AclSet
from controller.services import THIS_PROCESS, Sender

_log = logging.getLogger(__name__)
AUTHORIZER_CLASS: Final = "authorizer.class.name"


class AuthorizerConfigError(Exception):
    """The configured authorizer cannot be built. The text is one sentence for the operator."""


def load_authorizer(properties: Mapping[str, str]) -> Authorizer | None:
    """Return the authorizer that the properties name; None if they name none.

    Raises:
        AuthorizerConfigError: the authorizer cannot be imported or built.
    """
    name = properties.get(AUTHORIZER_CLASS, "").strip()
    if not name:
        return None
    try:
        factory = AclAuthorizer if name == CLASS_NAME else _find(name)
        authorizer: Authorizer = factory(properties)
    except AuthorizerConfigError:
        raise
    except Exception as error:
        # A user's class may raise anything.
        raise AuthorizerConfigError(
            f"{AUTHORIZER_CLASS}={name} could not be built ({type(error).__name__}: {error}): "
            f"correct its configuration."
        ) from error
    for method in ("authorize", "authorize_by_resource_type"):
        if not callable(getattr(authorizer, method, None)):
            raise AuthorizerConfigError(
                f"{AUTHORIZER_CLASS}={name} has no method {method}: see bridgehead.authorizer."
            )
    return authorizer


def _find(name: str) -> Callable[[Mapping[str, str]], Authorizer]:
    module, _, attribute = name.rpartition(".")
    try:
        load: Callable[[Mapping[str, str]], Authorizer] = getattr(
            importlib.import_module(module), attribute
        )
    except (ImportError, AttributeError, ValueError) as missing:
        raise AuthorizerConfigError(
            f"{AUTHORIZER_CLASS}={name} cannot be imported ({missing}): set it to "
            f"{CLASS_NAME}, or to the dotted path of a class on the PYTHONPATH of the nodes."
        ) from None
    return load


class Authorization:
    """Authorizes clients and senders of Envelopes. `acls` returns the current ACLs."""

    def __init__(
        self, authorizer: Authorizer | None, acls: Callable[[], AclSet], audit: Audit
    ) -> None:
        self.is_on = authorizer is not None
        self._authorizer = authorizer
        self.bind: BindAuthorize = no_authorizer
        if authorizer is not None:
            self.bind = bind_authorize(authorizer, audit)
        self.acls = acls

    def for_client(self, request: ClientRequest) -> Authorize:
        """See AuthorizeFor."""
        return self.bind(request.requester, self.acls())

    def on_any(
        self, request: ClientRequest, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """Return whether the client may perform the operation on any resource of the type."""
        if self._authorizer is None:
            return True
        requester, acls = request.requester, self.acls()
        try:
            return self._authorizer.authorize_by_resource_type(
                requester, operation, resource_type, acls
            ).allowed
        except Exception:  # A user's class may raise anything.
            _log.exception("the authorizer failed")
            return False

    @property
    def of_clients(self) -> AuthorizeFor | None:
        """Return `for_client`, or None without an authorizer: then everything is allowed."""
        return self.for_client if self.is_on else None

    def may_send_envelopes(self, sender: Sender) -> bool:
        """Return whether a broker has CLUSTER_ACTION; this node's own broker needs no right."""
        if sender.host == THIS_PROCESS:
            return True
        requester = Requester(
            principal=sender.principal,
            host=sender.host,
            api_key=ApiKey.ENVELOPE,
            api_version=0,
            client_id=str(sender.hello.broker_id),
            listener_name="",
            security_protocol="",
        )
        return self.bind(requester, self.acls())("CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME)
