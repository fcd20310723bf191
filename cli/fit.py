"""`tokcast fit`: the released coefficients, made again from the packaged measurements."""

import json
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tokcast.cli.progress import Progress
from tokcast.cli.render import Report, Table, render
from tokcast.fits.observations import observe
from tokcast.fits.release import PhaseFit, release, scores
from tokcast.fits.released import PATH
from tokcast.measurements.schema import packaged
from tokcast.predictor.errors import InputError

SAME = 0.01


def _score_table(fits: Mapping[str, PhaseFit]) -> Table:
    columns = (
        "phase",
        "left out, evidence",
        "rows",
        "hosts",
        "median",
        "MAPE",
        "host mean",
        "bias",
    )
    rows = [
        (
            phase,
            kind,
            str(s.n),
            str(s.n_hosts),
            f"{s.median_ape:.1f} %",
            f"{s.mape:.1f} %",
            f"{s.host_mean_mape:.1f} %",
            f"{s.bias:+.1f} %",
        )
        for phase, fitted in fits.items()
        for kind, s in scores(fitted.left_out).items()
    ]
    return Table(columns, tuple(rows), frozenset(columns[2:]))


def _effect_table(fits: Mapping[str, PhaseFit]) -> Table:
    rows = []
    for fitted in fits.values():
        e = fitted.estimate
        for name, value, error in zip(e.names, e.theta, e.stderr, strict=True):
            if "|chip=" not in name and "|family=" not in name:
                rows.append((name, f"{value:+.3f}", f"{error:.3f}"))
    return Table(("effect", "value", "std. error"), tuple(sorted(rows)), frozenset({"value"}))


def furthest(body: Mapping[str, Any], released: Mapping[str, Any]) -> float:
    """Return the largest difference of an effect between two sets of coefficients."""
    ours: dict[str, float] = body["effects"]
    theirs: dict[str, float] = released["effects"]
    return max(abs(ours.get(n, 0.0) - theirs.get(n, 0.0)) for n in {**ours, **theirs})


@dataclass(frozen=True, slots=True)
class Made:
    """Coefficients made again, how they came about, and the released ones beside them."""

    body: Mapping[str, Any]
    released: Mapping[str, Any]
    fits: Mapping[str, PhaseFit]
    n_observations: int
    n_hosts: int
    kept_out: Counter[str]
    seconds: float

    @property
    def apart(self) -> float:
        """Return the largest difference of an effect from the released one."""
        return furthest(self.body, self.released)

    @property
    def is_same(self) -> bool:
        """Return whether these are the released ones, as far as machines agree."""
        return self.apart <= SAME


def run(save: str | None, effects: bool, output: str) -> int:
    """Fit, print the held-out error, and write the coefficients to `save` when given.

    Exit code 1 when an effect is not the released one and nothing was saved. Linear algebra
    differs in the last digits between machines: effects are the same within SAME.
    """
    if save is not None and not Path(save).absolute().parent.is_dir():
        raise InputError(f"--save {save!r}: its folder is missing; expected a place to write to")
    made = _make()
    if save is not None:
        Path(save).write_text(json.dumps(made.body, indent=1) + "\n")
    print(render(_report(made, effects, save), output))
    return 0 if made.is_same or save is not None else 1


def _make() -> Made:
    started = time.monotonic()
    with Progress() as progress:
        progress("reading measurements")
        observations, rejected = observe(packaged())
        body, fits = release(observations, progress)
    return Made(
        body=body,
        released=json.loads(PATH.read_bytes()),
        fits=fits,
        n_observations=len(observations),
        n_hosts=len({o.host.name for o in observations}),
        kept_out=Counter(r.rule.name for r in rejected),
        seconds=time.monotonic() - started,
    )


def _report(made: Made, effects: bool, save: str | None) -> Report:
    digest, released = made.body["digest"], made.released["digest"]
    tables = [_score_table(made.fits)]
    if effects:
        tables.append(_effect_table(made.fits))
    verdict = (
        f"Coefficients {digest} from {made.n_observations:,} configurations"
        f" on {made.n_hosts} chips, {made.seconds:.0f} s; "
        + ("the released ones" if made.is_same else f"not the released {released}")
    )
    notes = (
        "Errors are of rows that the fit did not see: the model on this chip, the chip, or its"
        " family; a new model on no chip.",
        f"Largest difference of an effect from the released one: {made.apart:.1g}.",
        "Kept out: " + ", ".join(f"{n:,} {name}" for name, n in made.kept_out.most_common()) + ".",
        *((f"Written to {save}.",) if save is not None else ()),
    )
    data = _data(made)
    return Report((verdict,), tuple(tables), notes, data, [data])


def _data(made: Made) -> dict[str, Any]:
    return {
        "digest": made.body["digest"],
        "released": made.released["digest"],
        "largest_difference": made.apart,
        "n_observations": made.n_observations,
        "n_hosts": made.n_hosts,
        "kept_out": dict(made.kept_out),
        "seconds": made.seconds,
        "scores": {
            phase: {kind: asdict(s) for kind, s in scores(f.left_out).items()}
            for phase, f in made.fits.items()
        },
    }
