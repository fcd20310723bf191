"""`tokcast scaling`: exponents with intervals, tests against the roofline, where the law bends."""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tokcast.cli.options import number, one_count
from tokcast.cli.render import Report, Table, rate, render
from tokcast.fits.scaling_released import released_laws
from tokcast.hosts.quantity import parse_bandwidth
from tokcast.predictor.errors import InputError
from tokcast.predictor.scaling import SCHEMA, Law, depth_covariate

_UNITS = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}


@dataclass(frozen=True, slots=True)
class Request:
    """What was typed, as text."""

    params: str | None
    bits: str
    bandwidth: str | None
    n_depth: str
    backend: str | None
    plot: str | None
    save: str | None


def params_of(text: str) -> float:
    """Return a number of parameters such as 8B or 350M; raises InputError."""
    match = re.fullmatch(r"(\d+(?:\.\d*)?)([KMBT]?)", text.strip().upper())
    if match is None or float(match[1]) <= 0:
        raise InputError(f"--params {text[:40]!r}: expected parameters such as 8B or 350M")
    return float(match[1]) * _UNITS[match[2]]


def _chosen(laws: Sequence[Law], backend: str | None) -> list[Law]:
    if backend is None:
        return list(laws)
    found = [law for law in laws if law.group.lower() == backend.lower()]
    if not found:
        known = ", ".join(law.group for law in laws)
        raise InputError(f"--backend {backend[:40]!r}: no law; expected one of {known}")
    return found


def exponent_table(laws: Sequence[Law]) -> Table:
    """Return a line an exponent: its 95 % interval, the roof's own, the test against it."""
    columns = ("law", "of", "exponent", "95 % interval", "roof", "differs")
    rows = []
    for law in laws:
        for name, e in law.exponents.items():
            p = e.p_roofline
            rows.append(
                (
                    f"{law.response}, {law.group}",
                    name,
                    f"{e.value:+.2f}",
                    f"{e.low:+.2f} to {e.high:+.2f}",
                    "" if e.roofline is None else f"{e.roofline:+.0f}",
                    "" if p is None else ("yes" if p < 0.05 else "no") + f", p {_p(p)}",
                )
            )
    return Table(columns, tuple(rows), frozenset({"exponent", "95 % interval", "roof"}))


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def law_table(laws: Sequence[Law]) -> Table:
    """Return a line a law: its rows, its error on clusters left out, and where it bends."""
    columns = ("law", "rows", "left out", "MAPE", "roof alone", "bends at", "faster", "slower")
    rows = tuple(
        (
            f"{law.response}, {law.group}",
            f"{law.n:,}",
            f"{law.n_clusters} {law.cluster}s",
            f"{law.held_out_mape:.0f} %",
            "" if law.baseline_mape is None else f"{law.baseline_mape:.0f} %",
            "" if law.bend is None else f"{1e3 * law.bend.seconds:.2g} ms",
            "" if law.bend is None else f"{law.bend.below[0]:+.2f}",
            "" if law.bend is None else f"{law.bend.above[0]:+.2f}",
        )
        for law in laws
    )
    return Table(columns, rows, frozenset(columns[1:]))


def _asked(laws: Sequence[Law], r: Request) -> tuple[list[str], list[dict[str, Any]]]:
    """Return what the laws say of the figures given, in words and as data."""
    if r.params is None:
        return [], []
    values = {
        "active parameters": params_of(r.params),
        "bits a weight": number(r.bits, "--bits", "bits a weight"),
        "depth": depth_covariate(one_count(r.n_depth, "-d", at_least=0)),
    }
    if r.bandwidth is not None:
        values["bandwidth"] = parse_bandwidth(r.bandwidth)
    words, data = [], []
    for law in laws:
        if "bandwidth" in law.exponents and "bandwidth" not in values:
            words.append(f"{law.response}, {law.group}: needs --bandwidth")
            continue
        value, low, high = law.predict(values)
        outside = law.outside(values)
        words.append(
            f"{law.response}, {law.group}: {rate(value)} ({rate(low)} - {rate(high)})"
            + "".join(f"; warning: {w}" for w in outside)
        )
        data.append(
            {
                "response": law.response,
                "group": law.group,
                "value": value,
                "low": low,
                "high": high,
                "level": 0.8,
                "warnings": list(outside),
            }
        )
    return words, data


def _fit_again(path: str) -> tuple[Law, ...]:
    from tokcast.fits.energy import is_free
    from tokcast.fits.energy_observations import observe_energy
    from tokcast.fits.observations import observe
    from tokcast.fits.scaling import scaling_laws
    from tokcast.measurements.energy_rows import of_measurement, packaged_energy
    from tokcast.measurements.schema import packaged

    if not Path(path).absolute().parent.is_dir():
        raise InputError(f"--save {path!r}: its folder is missing; expected a place to write to")
    measured = packaged()
    powered = (of_measurement(m) for m in measured if m.power_w is not None)
    energies, _ = observe_energy([*packaged_energy(), *powered])
    laws = scaling_laws(observe(measured)[0], [o for o in energies if is_free(o)])
    body = {"schema": SCHEMA, "laws": [asdict(law) for law in laws]}
    Path(path).write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")
    return tuple(laws)


def run(request: Request, output: str) -> int:
    """Print the laws, and what they say of figures given."""
    laws = released_laws() if request.save is None else _fit_again(request.save)
    laws_shown = _chosen(laws, request.backend)
    words, data = _asked(laws_shown, request)
    notes = [
        "Exponents of least squares in logs, intervals robust to what a chip's (or a model's) rows"
        " share. Roof: what the memory roof alone would give; differs: at 5 %.",
        "MAPE: chips (or models) left out in turn; roof alone: the roof at the others' median"
        " efficiency. Bends at: the roof's time a token where the exponent of it changes; faster"
        " and slower are the exponents on either side, -1 for the roof.",
    ]
    if request.plot is not None:
        from tokcast.cli.scaling_plot import draw

        draw(laws_shown, request.plot)
        notes.append(f"Drawn to {request.plot}.")
    if request.save is not None:
        notes.append(f"Written to {request.save}.")
    report = Report(
        tuple(words) or (f"{len(laws_shown)} scaling laws of generation",),
        (exponent_table(laws_shown), law_table(laws_shown)),
        tuple(notes),
        {"laws": [asdict(law) for law in laws_shown], "asked": data},
        data or _records(laws_shown),
    )
    print(render(report, output))
    return 0


def _records(laws: Sequence[Law]) -> list[dict[str, Any]]:
    return [
        {"response": law.response, "group": law.group, "of": name, **asdict(e)}
        for law in laws
        for name, e in law.exponents.items()
    ]
