"""Live readings over HTTP: once, and as a stream of events."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from tokcast.cli.web.engine import Engine
from tokcast.cli.web.meters import Apple, Meter, Nvml, Rapl, status
from tokcast.cli.web.problems import Refused
from tokcast.cli.web.routes_predict import PROBLEMS

# A stream ends by itself, so that a forgotten one does not run for ever.
MOST_SECONDS = 3600.0
Read = Callable[[], dict[str, Any]]
Seconds = Annotated[float, Query(ge=0.2, le=60)]
Count = Annotated[int, Query(ge=1, le=18000, description="events before the stream ends")]
EVENTS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}
}


class Streams:
    """Readings as events, so many streams at once; none where the server is public."""

    def __init__(self, engine: Engine) -> None:
        self._config = engine.config
        self._n = 0

    def allow(self) -> None:
        """Refuse where the server keeps its machine to itself."""
        if self._config.public:
            raise Refused(403, "this server does not tell what it runs on")

    def open(self, read: Read, seconds: float, n: int) -> StreamingResponse:
        """Return a stream of readings; Refused beyond the number of streams."""
        self.allow()
        if self._n >= self._config.n_streams:
            raise Refused(503, f"more than {self._config.n_streams} streams at once; try again")
        events = self._events(read, seconds, min(n, int(MOST_SECONDS / seconds)))
        return StreamingResponse(events, media_type="text/event-stream")

    async def _events(self, read: Read, seconds: float, n: int) -> AsyncIterator[str]:
        self._n += 1
        try:
            for i in range(n):
                if i:
                    await asyncio.sleep(seconds)
                reading = await run_in_threadpool(read)
                yield f"event: reading\ndata: {json.dumps(reading)}\n\n"
        finally:
            self._n -= 1


def router(
    engine: Engine, nvml: Meter | None = None, others: Sequence[Meter] | None = None
) -> APIRouter:
    """Return the routes; tests give meters of their own."""
    api = APIRouter(prefix="/api/v1", tags=["meters"], responses=PROBLEMS)
    streams = Streams(engine)
    cards = nvml or Nvml()
    meters = (cards, *(others if others is not None else (Rapl(), Apple())))

    def all_of() -> dict[str, Any]:
        return {"meters": [status(m) for m in meters]}

    @api.get("/nvml/status", summary="Clocks, power and memory of NVIDIA cards, now")
    async def nvml_status() -> dict[str, Any]:
        streams.allow()
        return await run_in_threadpool(status, cards)

    @api.get(
        "/nvml/stream",
        summary="The same as events",
        response_class=StreamingResponse,
        responses=EVENTS,
    )
    async def nvml_stream(seconds: Seconds = 1.0, n: Count = 18000) -> StreamingResponse:
        return streams.open(lambda: status(cards), seconds, n)

    @api.get("/meters/status", summary="Every meter of this machine: NVML, RAPL, Apple's")
    async def meters_status() -> dict[str, Any]:
        streams.allow()
        return await run_in_threadpool(all_of)

    @api.get(
        "/meters/stream",
        summary="The same as events",
        response_class=StreamingResponse,
        responses=EVENTS,
    )
    async def meters_stream(seconds: Seconds = 1.0, n: Count = 18000) -> StreamingResponse:
        return streams.open(all_of, seconds, n)

    return api
