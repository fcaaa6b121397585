"""UpdateFeatures, key 57, versions 0 and 1 (kafka-semantics 3.13). KIP-584, KIP-778.

Behaviour: a cluster of ZooKeeper mode supports no feature, so that every update is refused, each
for the first reason that Kafka finds. Nothing is written; `validate_only` is not read.

Version notes:
    0: whether a feature may be lowered is a flag. 1: it is a type of upgrade.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from bridgehead.kafka_wire.error_responses import error_response
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from cluster_model.image import MetadataImage
from controller.apis.base import Decided, Decision, Outcome, RequestContext
from controller.apis.config_changes import CLUSTER_NAME

_UPGRADE: Final = 1
_SAFE_DOWNGRADE: Final = 2
_UPGRADE_TYPES: Final = (1, 2, 3)
_DENIED: Final = "denied"
# Features are elements under a prefix: the empty name is one that a client may send.
_FEATURE: Final = "feature:"


class UpdateFeatures:
    """See the module."""

    api_key: ClassVar[int] = 57

    def decide(
        self,
        context: RequestContext,
        request: UpdateFeaturesRequest,
        image: MetadataImage,
        settled: Mapping[str, Outcome],
    ) -> Decision:
        """See AdminApi.decide."""
        if not context.authorize("ALTER", "CLUSTER", CLUSTER_NAME):
            denied = Outcome(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            return Decision([Decided(_DENIED, denied)])
        # A feature that comes twice is answered once, as its first entry is judged.
        texts: dict[str, str] = {}
        for update in request.feature_updates:
            texts.setdefault(update.feature, _refusal(update, context.api_version))
        return Decision(
            [
                Decided(_FEATURE + name, Outcome(ErrorCode.INVALID_REQUEST, text))
                for name, text in texts.items()
            ]
        )

    def conflict(self, element: str) -> Outcome:
        """Cannot happen: nothing is written."""
        return Outcome(ErrorCode.FEATURE_UPDATE_FAILED)

    def answer(
        self,
        context: RequestContext,
        request: UpdateFeaturesRequest,
        outcomes: Mapping[str, Outcome],
        image: MetadataImage,
        unfinished: frozenset[str],
    ) -> Any:
        """See AdminApi.answer."""
        denied = outcomes.get(_DENIED)
        if denied is not None:
            error = denied.error
            return self.refuse(request, context.api_version, error, error.default_text)
        return UpdateFeaturesResponse(
            error_message=None,
            results=[
                UpdatableFeatureResult(
                    feature=element.removeprefix(_FEATURE),
                    error_code=outcome.error,
                    error_message=outcome.message,
                )
                for element, outcome in outcomes.items()
            ],
        )

    def refuse(
        self, request: UpdateFeaturesRequest, version: int, error: ErrorCode, message: str | None
    ) -> Any:
        """See AdminApi.refuse."""
        return error_response(self.api_key, request, version, error, message)


def _refusal(update: FeatureUpdateKey, version: int) -> str:
    """Return why one update cannot be: the first of Kafka's reasons that applies."""
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
