"""Models and predictions over HTTP."""

import json
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import anyio
from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from tokcast.cli.inspect import inspect_data
from tokcast.cli.web.engine import Engine
from tokcast.cli.web.library import listed
from tokcast.cli.web.schemas import CompareIn, InspectIn, Look, Pair, PredictIn
from tokcast.cli.web.view import compare, figures, roofline_data, view_of
from tokcast.predictor import catalogue

T = TypeVar("T")
PROBLEM = {
    "description": "A problem document",
    "content": {
        "application/problem+json": {
            "schema": {
                "type": "object",
                "required": ["type", "title", "status", "detail"],
                "properties": {
                    "type": {"type": "string"},
                    "title": {"type": "string"},
                    "status": {"type": "integer"},
                    "detail": {"type": "string"},
                },
            }
        }
    },
}
CODES = (400, 403, 404, 413, 421, 422, 503)
PROBLEMS: dict[int | str, dict[str, Any]] = dict.fromkeys(CODES, PROBLEM)


def as_json(data: Any) -> Response:
    """Return data as a JSON answer; not a number is a defect here."""
    return Response(json.dumps(data, allow_nan=False), media_type="application/json")


class RooflineIn(Pair, Look):
    """A pair and how its roofline is to look; without `host`, the machine that serves."""

    n_prompt: Annotated[int, Field(ge=1, le=1 << 20)] = 512
    n_depth: Annotated[int, Field(ge=0, le=1 << 24)] = 0
    n_ubatch: Annotated[int, Field(ge=1, le=1 << 16)] = 512

    def parts(self) -> tuple[Pair, CompareIn]:
        """Return the pair, and the conditions."""
        pair = Pair(**self.model_dump(include=set(Pair.model_fields)))
        lengths = self.model_dump(include={"n_prompt", "n_depth", "n_ubatch"})
        return pair, CompareIn(pairs=(pair,), **lengths)


class Worker:
    """Reads models in a thread, so many at once; works out the rest at once."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._slots = anyio.CapacityLimiter(engine.config.n_fetches)

    async def ready(self, *pairs: Any) -> None:
        """Return when the models of all pairs are read."""
        if self._engine.needs_fetch(pairs):
            async with self._slots:
                await run_in_threadpool(self._engine.fetch, pairs)


async def aside(work: Callable[[], T]) -> T:
    """Return what longer work makes, in a thread."""
    return await run_in_threadpool(work)


def router(engine: Engine) -> APIRouter:
    """Return the routes."""
    api = APIRouter(prefix="/api/v1", tags=["predict"], responses=PROBLEMS)
    worker = Worker(engine)
    _models(api, engine)
    _uploads(api, engine)

    @api.post("/predict", summary="Predict one model on one host")
    async def predict(body: PredictIn) -> dict[str, Any]:
        await worker.ready(body)
        return Response(engine.predict(body), media_type="application/json")  # type: ignore[return-value]

    @api.post("/compare", summary="Everything about up to four pairs")
    async def compared(body: CompareIn) -> dict[str, Any]:
        await worker.ready(*body.pairs)
        return as_json(compare(engine, body))  # type: ignore[return-value]

    @api.post("/inspect", summary="What is in a model, by address")
    async def inspect(body: InspectIn) -> dict[str, Any]:
        await worker.ready(body)
        spec, header = engine.library.both(body.model)
        return as_json({"address": body.model, **inspect_data(spec, header)})  # type: ignore[return-value]

    _rooflines(api, engine, worker)
    return api


def _models(api: APIRouter, engine: Engine) -> None:
    @api.get("/models", summary="The models that are known without their file")
    async def models() -> dict[str, Any]:
        found = [{"name": name, "title": catalogue.entry(name).title} for name in catalogue.names()]
        return {
            "models": found,
            "file_types": list(catalogue.file_types()),
            "local": [] if engine.config.public else listed(engine.config.folders),
        }


def _uploads(api: APIRouter, engine: Engine) -> None:
    @api.post(
        "/inspect/upload",
        summary="What is in a model, from the first bytes of its GGUF file",
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {
                    "application/octet-stream": {"schema": {"type": "string", "format": "binary"}}
                },
            }
        },
    )
    async def upload(
        request: Request, name: Annotated[str, Query(max_length=200)] = "dropped file"
    ) -> dict[str, Any]:
        data = await request.body()
        address, spec = await aside(lambda: engine.library.add(data, name))
        _, header = engine.library.both(address)
        return as_json({"address": address, **inspect_data(spec, header)})  # type: ignore[return-value]


def _rooflines(api: APIRouter, engine: Engine, worker: Worker) -> None:
    @api.get("/roofline", summary="A host's roof and a model's points under it")
    async def roofline(query: Annotated[RooflineIn, Query()]) -> dict[str, Any]:
        pair, body = query.parts()
        await worker.ready(pair)
        return as_json(roofline_data(view_of(engine, pair, body).roofline))  # type: ignore[return-value]

    @api.get(
        "/roofline.svg",
        summary="The same as a drawing",
        response_class=Response,
        responses={200: {"content": {"image/svg+xml": {"schema": {"type": "string"}}}}},
    )
    async def drawing(query: Annotated[RooflineIn, Query()]) -> Response:
        pair, body = query.parts()
        await worker.ready(pair)
        look = Look(theme=query.theme, width=query.width)
        drawn = figures([view_of(engine, pair, body)], body.n_depth, look, True)["roofline"]
        return Response(drawn, media_type="image/svg+xml")
