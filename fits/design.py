"""The design: the predictor's own terms and effects, arranged for the estimator."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tokcast.fits.estimate import Design
from tokcast.fits.observations import Observation
from tokcast.predictor.effects import Effect, Shape, effects_of
from tokcast.predictor.host import Host
from tokcast.predictor.ledger import Phase, Work, Workload
from tokcast.predictor.roofline import shape_of, tokens_of
from tokcast.predictor.terms import BACKENDS, OVERLAP, Run, Term, terms

# What names the effects that scale a term, `effects_of` for one.
Labels = Callable[[Term, Phase, Host, Run, Shape], tuple[Effect, ...]]

# A chip measured n times counts as n ** 0.5: between every row alike and every chip alike.
HOST_POWER = 0.5


class _Index(dict[object, int]):
    """Number things in the order they are first met."""

    def __missing__(self, key: object) -> int:
        self[key] = len(self)
        return self[key]


def host_weights(observations: Sequence[Observation], power: float) -> npt.NDArray[np.float64]:
    """Return weights (n_observations,) so that a chip measured n times counts as n**(1 - power)."""
    n = Counter(o.host.name for o in observations)
    return np.array([n[o.host.name] ** -power for o in observations])


def noise_classes(observations: Sequence[Observation]) -> npt.NDArray[np.intp]:
    """Return the class of noise of each observation (n_observations,).

    It is its backend's; LocalScore's figures, of one tool and the same lengths, scatter less.
    """
    return np.array(
        [2 * BACKENDS.index(o.run.backend) + o.is_suite for o in observations], dtype=np.intp
    )


@dataclass(slots=True)
class _Terms:
    """Columns of the design while they are being collected."""

    labels: Labels
    cells: _Index = field(default_factory=_Index)
    groups: _Index = field(default_factory=_Index)
    seconds: list[float] = field(default_factory=list)
    cell: list[int] = field(default_factory=list)
    group: list[int] = field(default_factory=list)
    part: list[int] = field(default_factory=list)

    def add(self, o: Observation, workload: Workload, works: Sequence[Work], part: int) -> None:
        """Add the terms of one workload of an observation."""
        shape = shape_of(o.spec, workload)
        for term in terms(works, o.host, o.run, workload.phase):
            self.seconds.append(term.seconds)
            self.cell.append(self.cells[self.labels(term, workload.phase, o.host, o.run, shape)])
            group = self.groups[part, term.group]
            if group == len(self.part):
                self.part.append(part)
            self.group.append(group)


def _entries(
    cells: Sequence[tuple[Effect, ...]], names: _Index
) -> Iterator[tuple[int, int, float]]:
    for row, pairs in enumerate(cells):
        for name, value in pairs:
            yield row, names[name], value


def design(
    observations: Sequence[Observation], power: float = HOST_POWER, labels: Labels = effects_of
) -> Design:
    """Return the design of observations of one phase; its terms are in the same order always."""
    collected, names = _Terms(labels), _Index()
    mean_rows: list[int] = []
    mean_values: list[float] = []
    for i, o in enumerate(observations):
        for workload, works in zip(o.workloads, o.works, strict=True):
            collected.add(o, workload, works, len(mean_rows))
            mean_rows.append(i)
            mean_values.append(tokens_of(workload) / len(o.workloads))
    cells = [key for key in collected.cells if isinstance(key, tuple)]
    rows, columns, values = zip(*_entries(cells, names), strict=True)
    n_parts = len(mean_rows)
    return Design(
        names=tuple(str(name) for name in names),
        cells=sparse.csr_array((values, (rows, columns)), shape=(len(cells), len(names))),
        seconds=np.array(collected.seconds),
        cell=np.array(collected.cell, dtype=np.intp),
        group=np.array(collected.group, dtype=np.intp),
        part=np.array(collected.part, dtype=np.intp),
        average=sparse.csr_array(
            (mean_values, (mean_rows, range(n_parts))), shape=(len(observations), n_parts)
        ),
        log_rate=np.log([o.tok_per_s for o in observations]),
        weight=host_weights(observations, power),
        noise=noise_classes(observations),
        power=OVERLAP[observations[0].workloads[0].phase],
    )
