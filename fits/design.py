"""The design matrix: the predictor's own terms and effects, arranged for the estimator."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from scipy import sparse

from tokcast.fits.estimate import Design
from tokcast.fits.observations import Observation
from tokcast.predictor.effects import Effect, effects_of
from tokcast.predictor.roofline import shape_of, tokens_of
from tokcast.predictor.terms import terms


class _Index(dict[object, int]):
    """Number things in the order they are first met."""

    def __missing__(self, key: object) -> int:
        self[key] = len(self)
        return self[key]


def host_weights(observations: Sequence[Observation], power: float) -> np.ndarray:
    """Return weights (n_observations,) so that a chip measured n times counts as n**(1 - power)."""
    n = Counter(o.host.name for o in observations)
    return np.array([n[o.host.name] ** -power for o in observations])


def design(observations: Sequence[Observation], power: float = 0.5) -> Design:
    """Return the sparse design of observations of one phase."""
    effects, cells = _Index(), _Index()
    cell_effects: list[tuple[Effect, ...]] = []
    part_rows: list[int] = []
    part_cols: list[int] = []
    part_values: list[float] = []
    mean_rows: list[int] = []
    mean_values: list[float] = []
    n_parts = 0
    for i, o in enumerate(observations):
        for workload, works in zip(o.workloads, o.works, strict=True):
            shape = shape_of(o.spec, workload)
            for term in terms(works, o.host, workload.phase):
                pairs = effects_of(term, workload.phase, o.host, o.run, shape)
                cell = cells[pairs]
                if cell == len(cell_effects):
                    cell_effects.append(pairs)
                part_rows.append(n_parts)
                part_cols.append(cell)
                part_values.append(term.seconds)
            mean_rows.append(i)
            mean_values.append(tokens_of(workload) / len(o.workloads))
            n_parts += 1
    rows, cols, values = [], [], []
    for cell, pairs in enumerate(cell_effects):
        for name, value in pairs:
            rows.append(cell)
            cols.append(effects[name])
            values.append(value)
    n_cells, n_effects = len(cell_effects), len(effects)
    return Design(
        names=tuple(str(name) for name in effects),
        cells=sparse.csr_array((values, (rows, cols)), shape=(n_cells, n_effects)),
        parts=sparse.csr_array((part_values, (part_rows, part_cols)), shape=(n_parts, n_cells)),
        average=sparse.csr_array(
            (mean_values, (mean_rows, range(n_parts))), shape=(len(observations), n_parts)
        ),
        log_rate=np.log([o.tok_per_s for o in observations]),
        weight=host_weights(observations, power),
    )
