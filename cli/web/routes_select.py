"""Choosing a model and a file type over HTTP, among the catalogue's."""

from typing import Any

from fastapi import APIRouter

from tokcast.cli.api import select
from tokcast.cli.select import Selection
from tokcast.cli.select_data import selection_data, selection_records
from tokcast.cli.web.engine import Engine
from tokcast.cli.web.library import is_word
from tokcast.cli.web.problems import Refused
from tokcast.cli.web.routes_predict import PROBLEMS, as_json, aside
from tokcast.cli.web.schemas import SelectIn
from tokcast.predictor.errors import InputError


def router(engine: Engine) -> APIRouter:
    """Return the route."""
    api = APIRouter(prefix="/api/v1", tags=["select"], responses=PROBLEMS)

    @api.post("/select", summary="Which model and file type to run on a host")
    async def selected(body: SelectIn) -> dict[str, Any]:
        found = await aside(lambda: _selected(engine, body))
        records = selection_records(found)[: body.limit]
        return as_json(selection_data(found, records, (), None))  # type: ignore[return-value]

    return api


def _selected(engine: Engine, body: SelectIn) -> Selection:
    if body.host is None and engine.config.public:
        raise Refused(403, "this server tells nothing of its machine: name a host")
    for model in body.models:
        if not is_word(model):
            raise InputError(f"{model}: expected a model of the catalogue, as in llama-3.1-8b")
    if body.host is not None:
        engine.named(body.host)
    return select(
        body.models,
        host=body.host,
        n_prompt=body.n_prompt,
        at_depth=body.n_depth,
        n_context=body.n_context,
        workload=body.workload,
        min_decode=body.min_decode_tok_per_s,
        max_ttft=body.max_ttft_s,
        max_turn=body.max_turn_s,
        memory=None if body.memory_bytes is None else f"{body.memory_bytes / 2**30}G",
        sort=body.sort,
        offline=True,
    )
