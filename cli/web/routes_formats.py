"""Which number formats to run a model in over HTTP, as `tokcast recommend` says."""

from typing import Any

from fastapi import APIRouter

from tokcast.cli.precision import Request, recommend
from tokcast.cli.precision_data import data_of
from tokcast.cli.web.engine import Engine
from tokcast.cli.web.library import is_word
from tokcast.cli.web.problems import Refused
from tokcast.cli.web.routes_predict import PROBLEMS, as_json, aside
from tokcast.cli.web.schemas import FormatsIn
from tokcast.predictor.errors import InputError


def router(engine: Engine) -> APIRouter:
    """Return the route."""
    api = APIRouter(prefix="/api/v1", tags=["kernels"], responses=PROBLEMS)

    @api.post("/formats", summary="Number formats of a model, operator by operator")
    async def formats(body: FormatsIn) -> dict[str, Any]:
        return as_json(await aside(lambda: _formats(engine, body)))  # type: ignore[return-value]

    return api


def _formats(engine: Engine, body: FormatsIn) -> dict[str, Any]:
    if body.host is None and engine.config.public:
        raise Refused(403, "this server tells nothing of its machine: name a host")
    if not is_word(body.model):
        raise InputError(f"{body.model}: expected a model of the catalogue, as in llama-3.1-8b")
    if body.host is not None:
        engine.named(body.host)
    memory = None if body.memory_bytes is None else f"{body.memory_bytes / 2**30}G"
    request = Request(
        model=body.model,
        phase=body.phase,
        n_context=str(body.n_context),
        objective=body.objective,
        plan=body.plan,
        kv=body.kv_format,
        host=body.host,
        memory=memory,
        offline=True,
    )
    return dict(data_of(recommend(request), None))
