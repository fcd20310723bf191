"""The design of placed runs: their times by what they go to, and what is believed of them."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from tokcast.fits.estimate import Design
from tokcast.fits.placed_rows import PlacedRun
from tokcast.fits.priors import Belief
from tokcast.predictor.coefficients import Coefficients
from tokcast.predictor.effects import Effect
from tokcast.predictor.placement.company import Company, effects_of
from tokcast.predictor.placement.gather import Times, company_of, gather, sole_device
from tokcast.predictor.placement.units import Timer
from tokcast.predictor.roofline import Question, tokens_of

# A model measured n times on a machine counts as n ** 0.5, as chips do in the fit of whole models.
MODEL_POWER = 0.5

BELIEFS = (
    # What main memory really reaches; the file format of a machine's modules is not known.
    Belief("cpu|machine=", 0.3),
    Belief("|machine=", 0.15),
    Belief("rows|with=rows", 1.5, 1.0),
    Belief("hop|with=rows", 0.5, 0.7),
    Belief("link|with=rows", 0.3, 0.15),
    Belief("cpu|base", 0.3),
    Belief("cpu|experts", 0.15),
    Belief("|runtime=", 0.3),
    # A hand-over waits for the card, a copy and threads that wake: some forty microseconds.
    Belief("crossing|base", 0.5, 1.5),
    Belief("hop|base", 1.0, 0.7),
    Belief("loop|base", 1.0),
    Belief("launch|with", 0.5),
    Belief("card|with=rows", 0.5),
    Belief("card|with", 0.15),
    Belief("streamed|base", 0.3),
    Belief("link|base", 0.3, 0.15),
    Belief("staging|base", 0.5, -0.3),
)


@dataclass(frozen=True, slots=True)
class Timed:
    """A placed run with its times before the placement's own scales."""

    run: PlacedRun
    times: Times
    company: Company

    @property
    def kind(self) -> str:
        """Return "cpu", "cards" or "rows": what the time is shared with."""
        return self.company.kind


def timed(runs: Sequence[PlacedRun], coefficients: Coefficients) -> list[Timed]:
    """Return the runs that several devices work on, with their times."""
    timers: dict[object, Timer] = {}
    found = []
    for run in runs:
        p = run.placement
        key = (id(p.spec), run.workload, run.run, run.machine)
        timer = timers.get(key)
        if timer is None:
            q = Question(run.workload, p.devices[0].host, run.run)
            timer = timers[key] = Timer(p.spec, p.devices, q, coefficients)
        if sole_device(p, timer) is None:
            times = gather(timer, p)
            company = replace(company_of(timer, times), machine=run.machine)
            found.append(Timed(run, times, company))
    return found


def design(rows: Sequence[Timed]) -> Design:
    """Return the design of timed runs of one phase, each time a term of its own."""
    cells: dict[tuple[Effect, ...], int] = {}
    seconds: list[float] = []
    cell: list[int] = []
    part: list[int] = []
    for i, row in enumerate(rows):
        sums: dict[tuple[Effect, ...], float] = defaultdict(float)
        for use, amount in row.times.items():
            effects = effects_of(use.role, use.component, row.company)
            sums[effects] += amount.seconds
        for effects, time in sums.items():
            seconds.append(time)
            cell.append(cells.setdefault(effects, len(cells)))
            part.append(i)
    names = tuple(dict.fromkeys(name for effects in cells for name, _ in effects))
    places = {name: i for i, name in enumerate(names)}
    entries = [(k, places[n], v) for effects, k in cells.items() for n, v in effects]
    at, column, value = zip(*entries, strict=True)
    n = len(rows)
    tokens = [float(tokens_of(r.run.workload)) for r in rows]
    count = Counter((r.run.machine, r.run.model) for r in rows)
    return Design(
        names=names,
        cells=sparse.csr_array((value, (at, column)), shape=(len(cells), len(names))),
        seconds=np.array(seconds),
        cell=np.array(cell, dtype=np.intp),
        group=np.arange(len(seconds), dtype=np.intp),
        part=np.array(part, dtype=np.intp),
        average=sparse.csr_array((tokens, (range(n), range(n))), shape=(n, n)),
        log_rate=np.log([r.run.tok_per_s for r in rows]),
        weight=np.array([count[r.run.machine, r.run.model] ** -MODEL_POWER for r in rows]),
        noise=np.zeros(n, dtype=np.intp),
    )
