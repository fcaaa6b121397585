"""DescribeCluster, key 60, versions 0 and 1: the brokers and the controller.

See docs/kafka/metadata.md#describecluster.

Version notes:
    1: the client selects brokers or (KRaft) controllers.
"""

from __future__ import annotations

from typing import ClassVar, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from broker_proxy.apis.admin.authorized_operations import cluster_operations
from broker_proxy.apis.admin.cluster_view import ClusterView
from broker_proxy.apis.base import AuthorizeFor, ClientRequest
from cluster_model.acls.authorization import allow_everything

_BROKERS: Final = 1
_CONTROLLERS: Final = 2


class DescribeCluster:
    """Answers DescribeCluster requests."""

    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_CLUSTER

    def __init__(self, view: ClusterView, *, authorize_for: AuthorizeFor | None = None) -> None:
        """Without `authorize_for` everything is allowed."""
        self._view = view
        self._authorize_for = authorize_for

    async def handle(
        self, request: ClientRequest, message: DescribeClusterRequest
    ) -> DescribeClusterResponse:
        """Return the metadata cache's view for the listener of the connection."""
        if request.header.api_version >= 1 and message.endpoint_type != _BROKERS:
            return self._wrong_endpoint(message.endpoint_type)
        listener = request.client.listener_name
        response = DescribeClusterResponse(
            error_code=ErrorCode.NONE,
            endpoint_type=_BROKERS,
            cluster_id=self._view.cluster_id,
            controller_id=self._view.controller_id(listener),
            brokers=[
                DescribeClusterBroker(
                    broker_id=broker.broker_id, host=at.host, port=at.port, rack=broker.rack
                )
                for broker, at in self._view.brokers(listener)
            ],
        )
        if message.include_cluster_authorized_operations:
            authorize = self._authorize_for(request) if self._authorize_for else allow_everything
            response.cluster_authorized_operations = cluster_operations(authorize)
        return response

    def _wrong_endpoint(self, requested_type: int) -> DescribeClusterResponse:
        if requested_type == _CONTROLLERS:
            error = ErrorCode.MISMATCHED_ENDPOINT_TYPE
            text = (
                "The request was sent to an endpoint of type BROKER, "
                "but we wanted an endpoint of type CONTROLLER"
            )
        else:
            error = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
            text = f"Unsupported endpoint type {requested_type}"
        return DescribeClusterResponse(error_code=error, error_message=text, endpoint_type=_BROKERS)
