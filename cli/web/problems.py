"""Errors as problem documents (RFC 9457)."""

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from tokcast.cli.render import cut, plain
from tokcast.predictor.errors import InputError

MEDIA_TYPE = "application/problem+json"


class Refused(Exception):  # noqa: N818
    """A request that the server's rules do not allow; `status` says why."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


def problem(
    status: int,
    detail: str,
    headers: Mapping[str, str] | None = None,
    errors: Sequence[Mapping[str, Any]] = (),
) -> Response:
    """Return a problem document; `errors` name the fields that are wrong."""
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": plain(cut(detail, 2000)),
    }
    if errors:
        body["errors"] = list(errors)
    return Response(
        json.dumps(body), status, media_type=MEDIA_TYPE, headers=dict(headers) if headers else None
    )


def _of_input(_: Request, error: Exception) -> Response:
    return problem(400, str(error))


def _of_rule(_: Request, error: Exception) -> Response:
    if not isinstance(error, Refused):
        raise error
    return problem(error.status, error.detail)


def _of_http(_: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    return problem(error.status_code, str(error.detail), error.headers)


def _of_body(_: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        raise error
    errors = [
        {"field": ".".join(map(str, e["loc"])), "detail": cut(str(e["msg"]), 300)}
        for e in error.errors()[:20]
    ]
    first = errors[0]
    return problem(422, f"{first['field']}: {first['detail']}", errors=errors)


def _of_defect(_: Request, __: Exception) -> Response:
    return problem(500, "a defect of tokcast; the server's log has the details")


def install(app: FastAPI) -> None:
    """Let every error of an application leave as a problem document."""
    app.add_exception_handler(InputError, _of_input)
    app.add_exception_handler(Refused, _of_rule)
    app.add_exception_handler(HTTPException, _of_http)
    app.add_exception_handler(RequestValidationError, _of_body)
    app.add_exception_handler(Exception, _of_defect)
