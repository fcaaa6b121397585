"""The OpenAPI document of the control API, derived from `operations`. No I/O."""

from __future__ import annotations

from typing import Any

import bridgehead
from bridgehead.control_api.operations import OPERATIONS, Field, Operation

ERRORS = {
    "400": "The request is malformed, or a field is unknown, missing or invalid.",
    "401": "The token is missing or wrong.",
    "404": "There is no such operation.",
    "405": "The operation has another method.",
    "408": "The request did not arrive within 10 s.",
    "409": "The cluster cannot do this now; the text says why.",
    "413": "The body is too large.",
    "503": "There are too many connections.",
}


def openapi_document() -> dict[str, Any]:
    """Return the OpenAPI 3.1 document."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Bridgehead",
            "version": bridgehead.__version__,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            "description": "Controls a running Bridgehead cluster. Each path has the words of the "
            "`bridgehead` command that does the same.",
        },
        "servers": [
            {
                "url": "http://{address}",
                "variables": {"address": {"default": "127.0.0.1:9091"}},
            }
        ],
        "security": [{"token": []}],
        "paths": {
            operation.path: {operation.method.lower(): _operation(operation)}
            for operation in OPERATIONS
        },
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {
                "Error": {
                    "type": "object",
                    "required": ["error"],
                    "properties": {"error": {"type": "string", "description": "One sentence."}},
                }
            },
            "responses": {
                status: {
                    "description": meaning,
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/Error"}}
                    },
                }
                for status, meaning in ERRORS.items()
            },
        },
    }


def _operation(operation: Operation) -> dict[str, Any]:
    words = operation.words
    result: dict[str, Any] = {
        "operationId": words[0] + "".join(word.title() for word in words[1:]),
        "summary": operation.does,
        "responses": {
            "200": {"description": "Done.", "content": _response(operation)},
            **{status: {"$ref": f"#/components/responses/{status}"} for status in ERRORS},
        },
    }
    if operation.is_public:
        result["security"] = []
    if operation.words == ("health",):
        result["responses"]["503"] = {"description": "The cluster is not ready."}
    if operation.fields and operation.method == "GET":
        result["parameters"] = [
            {"name": field.name, "in": "query", "required": field.required, "schema": _field(field)}
            for field in operation.fields
        ]
    elif operation.fields:
        required = [field.name for field in operation.fields if field.required]
        schema = {
            "type": "object",
            "additionalProperties": False,
            "properties": {field.name: _field(field) for field in operation.fields},
            **({"required": required} if required else {}),
        }
        result["requestBody"] = {
            "required": bool(required),
            "content": {"application/json": {"schema": schema}},
        }
    return result


def _response(operation: Operation) -> dict[str, Any]:
    if operation.is_file:
        return {"application/gzip": {"schema": {"type": "string", "format": "binary"}}}
    members = {
        name: {
            "type": [kind, "null"] if "null" in meaning else kind,
            "description": f"{meaning[0].upper()}{meaning[1:]}.",
        }
        for name, (kind, meaning) in operation.returns.items()
    }
    return {"application/json": {"schema": {"type": "object", "properties": members}}}


def _field(field: Field) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": field.kind, "description": field.meaning}
    if field.kind == "object":
        schema["additionalProperties"] = {"type": "string"}
    for name, value in (
        ("default", field.default),
        ("minimum", field.low),
        ("maximum", field.high),
        ("enum", list(field.choices) or None),
    ):
        if value is not None:
            schema[name] = value
    return schema
