"""The APIs that the controller decides, each in the module that is named after its ApiKey."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from bridgehead.kafka_wire.apis import SPECS, ApiSpec, Route
from controller.apis.base import AdminApi, ApiSettings


def build_admin_apis(settings: ApiSettings) -> Mapping[int, AdminApi]:
    """Return the APIs of bridgehead/kafka_wire/apis.py that the controller decides, by key."""
    return {
        key: api_class.build(settings)
        for key, (spec, api_class) in import_api_classes().items()
        if settings.stores_records or not spec.needs_data_plane
    }


def import_api_classes() -> Mapping[int, tuple[ApiSpec, type[AdminApi]]]:
    """Import the modules of the APIs; return the class of each API, by key."""
    specs = {key: spec for dialect in SPECS.values() for key, spec in dialect.items()}
    return {
        key: (spec, getattr(import_module(f"{__name__}.{spec.enum_name.lower()}"), spec.name))
        for key, spec in specs.items()
        if spec.route in (Route.FORWARD, Route.ON_CONTROLLER)
    }
