"""`tokcast fit`: the released coefficients, made again from the packaged measurements."""

import json
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
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


def _score_table(fits: dict[str, PhaseFit]) -> Table:
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


def _effect_table(fits: dict[str, PhaseFit]) -> Table:
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


def run(save: str | None, effects: bool, output: str) -> int:
    """Fit, print the held-out error, and write the coefficients to `save` when given.

    Exit code 1 when an effect is not the released one and nothing was saved. Linear algebra
    differs in the last digits between machines: effects are the same within SAME.
    """
    if save is not None and not Path(save).absolute().parent.is_dir():
        raise InputError(f"--save {save!r}: its folder is missing; expected a place to write to")
    started = time.monotonic()
    with Progress() as progress:
        progress("reading measurements")
        observations, rejected = observe(packaged())
        body, fits = release(observations, progress)
    released = json.loads(PATH.read_bytes())
    apart = furthest(body, released)
    same = apart <= SAME
    kept_out = Counter(r.rule.name for r in rejected)
    n_hosts = len({o.host.name for o in observations})
    tables = [_score_table(fits)]
    if effects:
        tables.append(_effect_table(fits))
    data: dict[str, Any] = {
        "digest": body["digest"],
        "released": released["digest"],
        "largest_difference": apart,
        "n_observations": len(observations),
        "n_hosts": n_hosts,
        "kept_out": dict(kept_out),
        "seconds": time.monotonic() - started,
        "scores": {
            phase: {kind: asdict(s) for kind, s in scores(f.left_out).items()}
            for phase, f in fits.items()
        },
    }
    verdict = (
        f"Coefficients {body['digest']} from {len(observations):,} configurations"
        f" on {n_hosts} chips, {data['seconds']:.0f} s; "
        + ("the released ones" if same else f"not the released {released['digest']}")
    )
    notes: tuple[str, ...] = (
        "Errors are of rows that the fit did not see: the model on this chip, the chip, or its"
        " family; a new model on no chip.",
        f"Largest difference of an effect from the released one: {apart:.1g}.",
        "Kept out: " + ", ".join(f"{n:,} {name}" for name, n in kept_out.most_common()) + ".",
    )
    if save is not None:
        Path(save).write_text(json.dumps(body, indent=1) + "\n")
        notes = (*notes, f"Written to {save}.")
    print(render(Report((verdict,), tuple(tables), notes, data, [data]), output))
    return 0 if same or save is not None else 1
