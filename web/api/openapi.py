"""The description of the interface, as OpenAPI has it: made of what requests are read by."""

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from langshift.settings import VERSION
from langshift.web.api.contract import ErrorAnswer
from langshift.web.api.endpoints import Endpoint
from langshift.web.api.errors import JSON, STATUS

_REF = "#/components/schemas/{name}"


def description(endpoints: Iterable[Endpoint], *, guarded: bool = False) -> dict[str, Any]:
    """The document, OpenAPI 3.1.

    Args:
        endpoints: what is described.
        guarded: whether a token is needed.
    """
    known = list(endpoints)
    types = [kind for one in known for kind in (one.body, one.answer) if kind is not None]
    schemas, components = msgspec.json.schema_components([*types, ErrorAnswer], ref_template=_REF)
    of = dict(zip([*types, ErrorAnswer], schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for one in known:
        operation: dict[str, Any] = {
            "operationId": re.sub(r"\W+", "_", f"{one.method.lower()} {one.path.strip('/')}"),
            "summary": one.summary,
            "responses": {"200": _content("What was asked for.", of[one.answer])},
        }
        for code in one.codes:
            status, what = str(STATUS[code]), code.replace("_", " ")
            if status in operation["responses"]:
                what = f"{operation['responses'][status]['description']}, or {what}"
            operation["responses"][status] = _content(what, of[ErrorAnswer])
        if one.body is not None:
            operation["requestBody"] = {"required": True, "content": {JSON: {"schema": of[one.body]}}}
        if guarded:
            operation["security"] = [{"token": []}]
        paths.setdefault(one.path, {})[one.method.lower()] = operation
    schemes = {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}} if guarded else {}
    return {
        "openapi": "3.1.0",
        "info": {"title": "langshift", "version": VERSION, "summary": "Search that is fair to every language."},
        "paths": paths,
        "components": {"schemas": _readable(components), **schemes},
    }


def _content(what: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": what, "content": {JSON: {"schema": schema}}}


def _readable(schema: Any) -> Any:  # noqa: ANN401 - JSON
    """The schema without `items: false`, which generators of clients cannot read; `maxItems` says the same."""
    if isinstance(schema, dict):
        return {name: _readable(one) for name, one in schema.items() if (name, one) != ("items", False)}
    return [_readable(one) for one in schema] if isinstance(schema, list) else schema
