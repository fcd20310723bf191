"""Matrix products and file types over HTTP."""

from typing import Any

import anyio
from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool

from tokcast.cli.recommend import Option, Recommendation, options_of, recommend
from tokcast.cli.running import is_here
from tokcast.cli.web.engine import Engine
from tokcast.cli.web.kernels import Product, analyze, measure, why_not_measured
from tokcast.cli.web.library import is_word
from tokcast.cli.web.problems import Refused
from tokcast.cli.web.routes_predict import PROBLEMS, as_json, aside
from tokcast.cli.web.schemas import AnalyzeIn, RecommendIn, SweepIn
from tokcast.predictor.errors import InputError
from tokcast.predictor.select.types import RULE
from tokcast.predictor.sources.open import DEFAULT_FILE_TYPE


def router(engine: Engine) -> APIRouter:
    """Return the routes."""
    api = APIRouter(prefix="/api/v1", tags=["kernels"], responses=PROBLEMS)
    one_at_a_time = anyio.CapacityLimiter(1)

    @api.post("/analyze", summary="One matrix product: theory, and a measurement where possible")
    async def analyzed(body: AnalyzeIn) -> dict[str, Any]:
        product = Product(body.m, body.n, body.k, body.type)
        host, _ = await aside(lambda: engine.named(body.host))
        data = analyze(product, host)
        note = _why_not(engine, body, product)
        measured = None
        if not note:
            async with one_at_a_time:
                measured = await run_in_threadpool(measure, product)
        return as_json({**data, "measured": measured, "measured_note": note})  # type: ignore[return-value]

    @api.post("/sweep", summary="Products of several shapes and types")
    async def sweep(body: SweepIn) -> dict[str, Any]:
        host, _ = await aside(lambda: engine.named(body.host))
        rows = [analyze(Product(s.m, s.n, s.k, t), host) for t in body.types for s in body.shapes]
        return as_json({"host": host.name, "rows": rows})  # type: ignore[return-value]

    @api.post("/recommend", summary="Which file type of a model to take on a host")
    async def recommended(body: RecommendIn) -> dict[str, Any]:
        found = await aside(lambda: _recommended(engine, body))
        return as_json({"rule": RULE, **_data(found)})  # type: ignore[return-value]

    return api


def _why_not(engine: Engine, body: AnalyzeIn, product: Product) -> str:
    if not body.measure:
        return "not asked for"
    if engine.config.public:
        raise Refused(403, "this server measures nothing")
    if body.host is not None:
        return "only this machine can be measured: leave host out"
    return why_not_measured(product)


def _recommended(engine: Engine, body: RecommendIn) -> Recommendation:
    if not is_word(body.model):
        raise InputError(f"{body.model}: expected a model of the catalogue, as in llama-3.1-8b")
    name, _, like = body.model.partition("@")
    host, _ = engine.host(body)
    setting = body.setting()
    n_context = body.n_context or body.n_depth + max(body.n_prompt, body.n_gen)
    engine.library.open(body.model)
    like = like or DEFAULT_FILE_TYPE
    here = is_here(body.host, body.bytes_per_s, body.flops_per_s)
    spec_of = engine.library.open
    found = options_of(name, like, host, setting, n_context, spec_of, is_here=here)
    return recommend(list(found), body.at_least_tok_per_s)


def _data(found: Recommendation) -> dict[str, Any]:
    return {
        "best": found.best.file_type if found.best else None,
        "why": found.why,
        "calibrated": any(o.calibration for o in found.options),
        "options": [_option(o) for o in found.options],
    }


def _option(o: Option) -> dict[str, Any]:
    return {
        "file_type": o.file_type,
        "bits_per_weight": o.bits,
        "n_bytes": o.spec.n_bytes,
        "decode": {k: getattr(o.decode, k) for k in ("tok_per_s", "low", "high", "level")},
        "prefill": {k: getattr(o.prefill, k) for k in ("tok_per_s", "low", "high", "level")},
        "need_bytes": o.fit.need_bytes,
        "available_bytes": o.fit.available_bytes,
        "fits": o.fit.fits,
        "largest_context": o.fit.largest_context,
    }
