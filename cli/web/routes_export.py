"""Drawings of the page, plain and with a receipt."""

from importlib.metadata import version
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path
from starlette.responses import Response

from tokcast.cli.receipts import sealed_svg
from tokcast.cli.web.engine import Engine
from tokcast.cli.web.routes_predict import PROBLEMS, Worker
from tokcast.cli.web.schemas import CompareIn, Look
from tokcast.cli.web.view import figures, view_of

Name = Annotated[Literal["decode", "prefill", "roofline"], Path()]
SVG: dict[int | str, dict[str, Any]] = {
    200: {"content": {"image/svg+xml": {"schema": {"type": "string"}}}}
}


def router(engine: Engine) -> APIRouter:
    """Return the routes."""
    api = APIRouter(prefix="/api/v1", tags=["drawings"], responses=PROBLEMS)
    worker = Worker(engine)

    async def drawn(name: str, body: CompareIn, is_alone: bool) -> str:
        await worker.ready(*body.pairs)
        views = [view_of(engine, pair, body) for pair in body.pairs]
        return figures(views, body.n_depth, body.look or Look(), is_alone)[name]

    @api.post("/figure/{name}.svg", summary="A drawing", response_class=Response, responses=SVG)
    async def figure(name: Name, body: CompareIn) -> Response:
        return Response(await drawn(name, body, False), media_type="image/svg+xml")

    @api.post(
        "/export/{name}.svg",
        summary="A drawing with a receipt that `tokcast verify` checks",
        response_class=Response,
        responses=SVG,
    )
    async def export(name: Name, body: CompareIn) -> Response:
        about = {"software": software(), "figure": name, "asked": body.model_dump(mode="json")}
        return Response(
            sealed_svg(about, await drawn(name, body, True)), media_type="image/svg+xml"
        )

    return api


def software() -> str:
    """Return name and version of this program."""
    return f"tokcast {version('tokcast')}"
