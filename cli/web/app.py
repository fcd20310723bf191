"""The web application: rules, routes and the page."""

from importlib.metadata import version
from pathlib import Path

from fastapi import FastAPI
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles

from tokcast.cli.web import (
    problems,
    routes_export,
    routes_formats,
    routes_hosts,
    routes_kernels,
    routes_meters,
    routes_predict,
    routes_select,
    routes_worksheet,
)
from tokcast.cli.web.config import Config
from tokcast.cli.web.engine import Engine
from tokcast.cli.web.guard import Guard
from tokcast.cli.web.library import Library

STATIC = Path(__file__).with_name("static")
ABOUT = "How fast a language model will run on a machine, how sure that is, and why. SI units."


def create_app(config: Config, library: Library | None = None) -> FastAPI:
    """Return the application of one server; raises InputError for mirrors that are no address."""
    app = FastAPI(
        title="tokcast",
        version=version("tokcast"),
        description=ABOUT,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    engine = Engine(config, library or Library(config))
    problems.install(app)
    app.include_router(routes_predict.router(engine))
    for routes in (
        routes_hosts,
        routes_worksheet,
        routes_export,
        routes_kernels,
        routes_formats,
        routes_select,
        routes_meters,
    ):
        app.include_router(routes.router(engine))
    _pages(app)
    app.add_middleware(Guard, config=config)
    return app


def _pages(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return FileResponse(STATIC / "index.html")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return FileResponse(STATIC / "docs.html")

    app.mount("/static", StaticFiles(directory=STATIC), name="static")
