"""The APIs that the controller decides, each in the module that is named after its ApiKey."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from bridgehead.kafka_wire.apis import SPECS, ApiSpec, Route
from controller.apis.base import AdminApi, ApiSettings


def build_admin_apis(settings: ApiSettings) -> Mapping[int, AdminApi]:
    """Return the APIs of bridgehead/kafka_wire/apis.py that the controller decides, by key."""
    specs = {key: spec for dialect in SPECS.values() for key, spec in dialect.items()}
    return {
        key: _api_class(spec).build(settings)
        for key, spec in specs.items()
        if spec.route in (Route.FORWARD, Route.ON_CONTROLLER)
        and (settings.stores_records or not spec.needs_data_plane)
    }


def _api_class(spec: ApiSpec) -> type[AdminApi]:
    module = import_module(f"{__name__}.{spec.enum_name.lower()}")
    api_class: type[AdminApi] = getattr(module, spec.name)
    return api_class
