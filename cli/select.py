"""`tokcast select`: which model and quantization to run on a host."""

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tokcast.cli.fitting import available_bytes, memory_notes
from tokcast.cli.options import (
    backend_of,
    host_of,
    one_count,
    runtime_of,
)
from tokcast.cli.predict_notes import several_devices_notes
from tokcast.cli.progress import Progress
from tokcast.cli.render import Report, check_format, render
from tokcast.cli.running import applied, is_here, run_with
from tokcast.cli.select_request import Request, Show, asked_of, formats_of, wishes_of
from tokcast.fits.calibrated import Applied
from tokcast.fits.released import released
from tokcast.predictor.host import Host
from tokcast.predictor.select.candidate import Found
from tokcast.predictor.select.candidates import whole_catalogue
from tokcast.predictor.select.ranking import goal_of, ranked
from tokcast.predictor.select.rows import Goal, Judge, Row, Setup
from tokcast.predictor.select.wishes import Wishes
from tokcast.predictor.sources.settings import from_environ
from tokcast.predictor.terms import Run


@dataclass(frozen=True, slots=True)
class Selection:
    """Every candidate on one host, best first.

    `notes` are what is uncertain about the host, `is_usual_speed` says that the slowest speed is
    the usual one, not asked for. `calibration` says when this machine was calibrated and from how
    many models, where it was.
    """

    host: Host
    wishes: Wishes
    goal: Goal
    rows: tuple[Row, ...]
    found: Found
    notes: tuple[str, ...]
    coefficients: str
    is_usual_speed: bool
    calibration: str = ""

    @property
    def pick(self) -> Row | None:
        """Return the best row that meets every wish."""
        return self.rows[0] if self.rows and self.rows[0].is_feasible else None

    @property
    def n_feasible(self) -> int:
        """Return how many rows meet every wish."""
        return sum(row.is_feasible for row in self.rows)


def run_of(request: Request, host: Host) -> Callable[[str], Run]:
    """Return how a model of a format is run on a host."""

    def run(model_format: str) -> Run:
        name = runtime_of(None, model_format)
        asked = None if name == "mlx" else request.backend
        backend = backend_of(asked, name, host)
        return run_with(name, backend, request.flash_attn, is_here=request.host is None)

    return run


def judge_of(request: Request, host: Host, wishes: Wishes) -> tuple[Judge, list[Applied]]:
    """Return what judges candidates on a host, and a list that what it predicts with joins."""
    here = is_here(request.host, request.bandwidth, request.tflops)
    how, used = run_of(request, host), list[Applied]()

    def setup(model_format: str) -> Setup:
        run = how(model_format)
        used.append(applied(host, run, is_here=here))
        return Setup(used[-1].host, run, used[-1].coefficients)

    return Judge(host, available_bytes(host), setup, wishes), used


@contextmanager
def no_collecting() -> Iterator[None]:
    """Keep the cyclic garbage collector from walking thousands of values that all stay."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def candidates_of(request: Request, formats: tuple[str, ...]) -> Found:
    """Return the candidates, showing how far it is."""
    asked = asked_of(request, formats)
    with Progress() as progress:
        if asked.is_catalogue:
            return whole_catalogue(formats)
        from tokcast.predictor.select.looking import look  # the network takes long to import

        def show(n: int, of: int) -> None:
            if of > 1:
                progress(f"reading headers: {n} of {of}")

        return look(asked, from_environ(os.environ, request.offline or None), show)


def select(request: Request) -> Selection:
    """Return all candidates on the host, best first; raises InputError on bad input."""
    goal = goal_of(request.sort)
    wishes, is_usual = wishes_of(request)
    host, notes = host_of(request.host, request.bandwidth, request.tflops, request.memory)
    found = candidates_of(request, formats_of(request.runtime, host))
    return selection(request, host, notes, found, replace(wishes), goal, is_usual)


def selection(
    request: Request,
    host: Host,
    notes: tuple[str, ...],
    found: Found,
    wishes: Wishes,
    goal: Goal,
    is_usual: bool,
) -> Selection:
    """Return candidates on one host, best first."""
    judge, used = judge_of(request, host, wishes)
    rows = ranked(map(judge.row, found.candidates), goal)
    said = tuple(a.summary for a in used if a.is_calibrated)
    return Selection(
        host,
        wishes,
        goal,
        tuple(rows),
        found,
        (*_host_notes(host, notes, used), *several_devices_notes(host)),
        released().digest,
        is_usual,
        said[0] if said else "",
    )


def _host_notes(host: Host, notes: tuple[str, ...], used: Sequence[Applied]) -> tuple[str, ...]:
    """Return what is uncertain of a host; a calibration settles what detection guessed."""
    if any(a.is_calibrated for a in used):
        return ()
    return (*notes, *memory_notes(host), *dict.fromkeys(a.note for a in used if a.note))


def run(request: Request, show: Show, output: str) -> int:
    """Print the choice; exit code 1 when no candidate meets the wishes."""
    check_format(output)
    with no_collecting():
        made, code = _report(request, show, output)
        print(render(made, output))
    return code


def _report(request: Request, show: Show, output: str) -> tuple[Report, int]:
    from tokcast.cli import select_report as report

    top = one_count(show.top, "--top")
    if show.hosts is not None:
        from tokcast.cli.select_hosts import hosts_report

        return hosts_report(request, show.hosts, top)
    chosen = select(request)
    if show.plot is not None:
        from tokcast.cli.select_plot import draw

        draw(chosen, show.plot)
    code = 0 if chosen.pick is not None else 1
    if show.why is not None:
        return report.why(chosen, show.why, top), code
    others = _what_if(request, show.what_if, chosen)
    with_data = output not in ("table", "md")
    return report.choice(chosen, others, top, show.quants, with_data), code


def _what_if(request: Request, names: tuple[str, ...], chosen: Selection) -> list[Selection]:
    found = []
    for name in names:
        host, notes = host_of(name, None, None, None)
        found.append(
            selection(
                replace(request, host=name, backend=None),
                host,
                notes,
                chosen.found,
                chosen.wishes,
                chosen.goal,
                chosen.is_usual_speed,
            )
        )
    return found
