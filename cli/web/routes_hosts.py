"""Chips over HTTP, and what this server is."""

from dataclasses import asdict
from importlib.metadata import version
from typing import Annotated, Any

from fastapi import APIRouter, Query

from tokcast.cli.hosts import describe
from tokcast.cli.web.engine import Engine
from tokcast.cli.web.problems import Refused
from tokcast.cli.web.routes_predict import PROBLEMS, aside
from tokcast.fits.released import released
from tokcast.hosts.grids import grids
from tokcast.hosts.registry import chips


def router(engine: Engine) -> APIRouter:
    """Return the routes."""
    api = APIRouter(prefix="/api/v1", tags=["hosts"], responses=PROBLEMS)
    _grids(api)

    @api.get("/status", summary="What this server is and may do")
    async def status() -> dict[str, Any]:
        coefficients = released()
        return {
            "version": version("tokcast"),
            "coefficients": coefficients.digest,
            "n_observations": sum(coefficients.n_observations.values()),
            "public": engine.config.public,
            "folders": len(engine.config.folders),
            "mirrors": list(engine.config.mirrors),
        }

    @api.get("/hosts", summary="The chips that are known, or those whose name holds every word")
    async def hosts(
        text: Annotated[str, Query(max_length=100)] = "", brief: bool = False
    ) -> dict[str, Any]:
        words = text.lower().split()
        found = [h for h in chips() if all(w in h.name.lower() for w in words)]
        if brief:
            return {"hosts": [[h.name, h.bytes_per_s, sizes(h)] for h in found]}
        return {"hosts": [describe(h) for h in found]}

    @api.get("/hosts/show", summary="One chip, with where its figures were published")
    async def show(name: Annotated[str, Query(min_length=1, max_length=200)]) -> dict[str, Any]:
        from tokcast.cli.options import named

        if not name.isprintable() or name.lower().endswith(".toml"):
            raise Refused(404, "expected the name of a chip, such as RTX 4090")
        return describe(named(name)[0])

    @api.get("/hosts/this", summary="The machine that serves")
    async def this() -> dict[str, Any]:
        if engine.config.public:
            raise Refused(403, "this server does not tell what it runs on")
        host, notes = await aside(lambda: engine.named(None))
        return {"host": describe(host), "notes": list(notes)}

    return api


def _grids(api: APIRouter) -> None:
    @api.get("/grids", summary="What a kWh emits, by country")
    async def known_grids() -> dict[str, Any]:
        return {"grids": [asdict(g) for g in grids().values()]}


def sizes(host: Any) -> list[float]:
    """Return the memory sizes that a chip was sold with, in bytes."""
    return list(host.memory_options_bytes or ((host.memory_bytes,) if host.memory_bytes else ()))
