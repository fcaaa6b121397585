"""UpdateFeatures, key 57, versions 0 and 1 (docs/kafka/metadata.md). KIP-584, KIP-778.

A cluster in ZooKeeper mode supports no features, so every update is rejected, with the first error
that Kafka finds. Nothing is written; `validate_only` is ignored.

Version notes:
    0: a flag allows downgrades. 1: an upgrade type instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from cluster_model.acls.authorization import CLUSTER_NAME
from cluster_model.image import MetadataImage
from controller.apis.base import AdminApi, Decided, Decision, Outcome, RequestContext, Results

_UPGRADE: Final = 1
_SAFE_DOWNGRADE: Final = 2
_UPGRADE_TYPES: Final = (1, 2, 3)
# Element names have a prefix, because a client may send an empty feature name.
_FEATURE: Final = "feature:"


class UpdateFeatures(AdminApi):
    """Decides UpdateFeatures requests."""

    api_key: ClassVar[ApiKey] = ApiKey.UPDATE_FEATURES

    def decide(
        self,
        context: RequestContext,
        request: UpdateFeaturesRequest,
        image: MetadataImage,
        committed: Mapping[str, Outcome],
    ) -> Decision:
        if not context.authorize("ALTER", "CLUSTER", CLUSTER_NAME):
            denied = Outcome.with_default_text(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            return Decision.of_whole_request(denied)
        # The response lists a duplicate feature once, with the error of its first entry.
        texts: dict[str, str] = {}
        for update in request.feature_updates:
            texts.setdefault(update.feature, _rejection(update, context.api_version))
        return Decision(
            [
                Decided(_FEATURE + name, Outcome(ErrorCode.INVALID_REQUEST, text))
                for name, text in texts.items()
            ]
        )

    def conflict(self, element: str) -> Outcome:
        return Outcome(ErrorCode.FEATURE_UPDATE_FAILED)

    def response(
        self, context: RequestContext, request: UpdateFeaturesRequest, results: Results
    ) -> Any:
        rejected = self.whole_request_error(context, request, results)
        if rejected is not None:
            return rejected
        return UpdateFeaturesResponse(
            error_message=None,
            results=[
                UpdatableFeatureResult(
                    feature=element.removeprefix(_FEATURE),
                    error_code=outcome.error,
                    error_message=outcome.message,
                )
                for element, outcome in results.outcomes.items()
            ],
        )


def _rejection(update: FeatureUpdateKey, version: int) -> str:
    """Return the message of Kafka's first failing check."""
    upgrade_type = update.upgrade_type
    if version == 0:
        upgrade_type = _SAFE_DOWNGRADE if update.allow_downgrade else _UPGRADE
    if not update.feature:
        return "Feature name can not be empty."
    if upgrade_type not in _UPGRADE_TYPES:
        return "Received unknown upgrade type."
    if update.max_version_level < 1:
        if upgrade_type != _UPGRADE:
            return "Can not delete non-existing finalized feature."
        return (
            f"Can not provide versionLevel: {update.max_version_level} less than 1 "
            "without setting the SAFE downgradeType in the request."
        )
    return "Could not apply finalized feature update because the provided feature is not supported."
