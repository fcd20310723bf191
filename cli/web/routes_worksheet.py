"""Worksheets over HTTP: worked out, and exported with a receipt."""

from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from tokcast.cli.charts.roofline import Point, Roofline, draw_roofline
from tokcast.cli.charts.theme import theme_of
from tokcast.cli.receipts import sealed_csv, sealed_json, sealed_svg
from tokcast.cli.scene import Scene, ceilings_of, link_of, slopes_of
from tokcast.cli.web.engine import Engine
from tokcast.cli.web.routes_export import SVG, software
from tokcast.cli.web.routes_predict import PROBLEMS, Worker, as_json
from tokcast.cli.web.schemas import Body, Conditions, Look, Pair, Positive
from tokcast.cli.worksheet import (
    FACTORS,
    Origin,
    Result,
    Worksheet,
    document,
    edited,
    rows,
    work_out,
)
from tokcast.cli.worksheet_inputs import inputs_of, is_capped


class Edit(Body):
    """One input replaced; values must be finite and positive."""

    key: Annotated[str, Field(max_length=80, examples=["bytes_per_s"])]
    value: Positive
    origin: Origin = "assumed"


class WorksheetIn(Conditions):
    """A pair, the conditions, and what is edited."""

    pair: Pair
    edits: Annotated[tuple[Edit, ...], Field(max_length=64)] = ()
    look: Look = Look()


def router(engine: Engine) -> APIRouter:
    """Return the routes."""
    api = APIRouter(prefix="/api/v1", tags=["worksheet"], responses=PROBLEMS)
    worker = Worker(engine)

    async def sheet_of(body: WorksheetIn) -> tuple[Scene, Worksheet]:
        await worker.ready(body.pair)
        scene = engine.scene(body.pair, body.setting())
        edits = {e.key: (e.value, e.origin) for e in body.edits}
        return scene, work_out(edited(inputs_of(scene), edits), is_capped(scene))

    @api.post("/worksheet", summary="Every number as an input, and what follows")
    async def worksheet(body: WorksheetIn) -> dict[str, Any]:
        scene, sheet = await sheet_of(body)
        data = document(sheet, about(scene, body))
        return as_json({**data, "figure": drawn(scene, sheet, body.look)})  # type: ignore[return-value]

    @api.post("/export/worksheet.json", summary="A worksheet with its receipt")
    async def as_document(body: WorksheetIn) -> dict[str, Any]:
        scene, sheet = await sheet_of(body)
        text = sealed_json(document(sheet, about(scene, body)))
        return Response(text, media_type="application/json")  # type: ignore[return-value]

    @api.post(
        "/export/worksheet.{form}",
        summary="A worksheet as a table or a drawing, with its receipt",
        response_class=Response,
        responses={**SVG, 200: {"content": {**SVG[200]["content"], "text/csv": {}}}},
    )
    async def as_file(form: Literal["csv", "svg"], body: WorksheetIn) -> Response:
        scene, sheet = await sheet_of(body)
        said = about(scene, body)
        if form == "csv":
            return Response(sealed_csv(said, rows(sheet)), media_type="text/csv")
        text = sealed_svg(said, drawn(scene, sheet, body.look, is_alone=True))
        return Response(text, media_type="image/svg+xml")

    return api


def about(scene: Scene, body: WorksheetIn) -> dict[str, Any]:
    """Return what a worksheet is of, and by which version."""
    return {
        "software": software(),
        "title": scene.label,
        "model": {"name": scene.spec.name, "source": scene.spec.source},
        "host": scene.host.name,
        "calibration": scene.calibration or None,
        "runtime": scene.run.runtime,
        "backend": scene.run.backend,
        "conditions": body.model_dump(mode="json", exclude={"pair", "edits", "look"}),
    }


def roof_of(scene: Scene, sheet: Worksheet) -> Roofline:
    """Return the roof and the phases' points as the worksheet has them, with bands."""
    values = {i.key: i.value for i in sheet.inputs}
    slopes = slopes_of(scene.host, link_of(scene.host))
    own = replace(slopes[0], bytes_per_s=values["bytes_per_s"])
    known = ceilings_of(scene.host)
    top = replace(known[0], flops_per_s=values["peak_flops_per_s"])
    lower = tuple(c for c in known[1:] if c.flops_per_s < top.flops_per_s)
    points = tuple(_point(r, sheet) for r in sheet.results)
    band = (FACTORS[0], FACTORS[-1])
    return Roofline(scene.label, (own, *slopes[1:]), (top, *lower), points, band)


def _point(r: Result, sheet: Worksheet) -> Point:
    speeds = [v for s in sheet.sensitivities if s.phase == r.phase for v in s.tok_per_s]
    per_token = r.flops / r.n_tokens
    return Point(
        r.phase,
        r.phase,
        "phase",
        r.flops,
        r.bytes,
        r.seconds,
        low=min(speeds) * per_token,
        high=max(speeds) * per_token,
        left=r.intensity * FACTORS[0],
        right=r.intensity * FACTORS[-1],
    )


def drawn(scene: Scene, sheet: Worksheet, look: Look, is_alone: bool = False) -> str:
    """Return the worksheet's roofline."""
    width = float(look.width)
    tall = min(480.0, max(320.0, 0.58 * width))
    return draw_roofline(
        [roof_of(scene, sheet)],
        "Worksheet",
        width=width,
        height=tall,
        theme=theme_of(look.theme),
        is_alone=is_alone,
    )
