"""`tokcast energy train`: the seconds and joules of training a model, before doing it."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from tokcast.cli.energy_question import Asked, asked
from tokcast.cli.energy_recipe import Request
from tokcast.cli.fitting import available_bytes
from tokcast.cli.predict_energy import bill, bill_words
from tokcast.cli.progress import clock_text
from tokcast.cli.render import Report, Table, check_format, params, rate, render, size
from tokcast.fits.training_release import released_laws
from tokcast.predictor.training.forecast import LEVEL, Range, TrainForecast, TrainQuestion, forecast
from tokcast.predictor.training.law import Laws
from tokcast.predictor.training.work import held_bytes

_JOULES_A_KWH = 3.6e6


def run(request: Request, output: str) -> int:
    """Print what training takes; exit code 1 when it does not fit the devices' memory."""
    check_format(output)
    laws = released_laws()
    wanted = asked(request, laws)
    found = forecast(wanted.question, laws)
    there = available_bytes(replace(wanted.host, n_devices=1))
    if there is not None and wanted.host.kind == "cpu":
        # Processes of one processor share its memory.
        there /= wanted.question.layout.n_devices
    print(render(_report(wanted, found, laws, there), output))
    return 0 if there is None or found.device_bytes <= there else 1


def _report(a: Asked, f: TrainForecast, laws: Laws, there: float | None) -> Report:
    q = a.question
    total_s, total_j = f.seconds.times(a.n_steps), f.joules.times(a.n_steps)
    n = q.layout.n_devices
    where = f"{n}x {a.host.name}" if n > 1 else a.host.name
    verdict = (
        f"Training {q.shape.name} ({params(q.shape.n_params)}) on {where}"
        f" ({q.layout}, {q.step.precision})",
        f"  {_of(f.seconds, _time(f.seconds))}, {_of(f.joules, _energy(f.joules))} a step",
        f"  {a.n_steps:,} steps: {clock_text(total_s.value)}, {_of(total_j, _energy(total_j))}"
        + bill_words(bill(total_j.value, a.costs)),
        f"  {_memory_words(q, f.device_bytes, there)}",
    )
    rows = tuple(_rows(q, f))
    table = Table(("a step", "value"), rows, frozenset({"value"}))
    notes = (*a.notes, *_evidence(q, f, laws))
    record = _record(a, f, there)
    data = {**record, "model": asdict(q.shape), "coefficients": laws.digest, "notes": list(notes)}
    return Report(verdict, (table,), tuple(_sentence(n) for n in notes), data, [record])


def _rows(q: TrainQuestion, f: TrainForecast) -> Iterator[tuple[str, str]]:
    yield "tokens", f"{q.step.n_tokens:,}"
    yield "operations", f"{rate(f.flops / 1e12)} Tflop"
    yield "bytes moved", f"{rate(f.bytes / 1e9)} GB"
    yield "tokens/s", rate(q.step.n_tokens / f.seconds.value)
    yield "joules a token", f"{f.joules.value / q.step.n_tokens:.3g}"
    yield "share of the peak", f"{100 * _share(q, f):.1f} %"
    if q.layout.n_devices > 1:
        how = "" if q.speedup is None else " (given)"
        yield "speedup", f"{f.efficiency * q.layout.n_devices:.2f}{how}"
        yield "efficiency", f"{100 * f.efficiency:.1f} %"
    yield "power of all devices", f"{f.watts:,.0f} W" + ("" if f.is_metered else " (stated)")


def _share(q: TrainQuestion, f: TrainForecast) -> float:
    return f.flops / q.device.flops_per_s / q.layout.n_devices / f.seconds.value


def _memory_words(q: TrainQuestion, need: float, there: float | None) -> str:
    if there is None:
        return f"Needs {size(need)} a device; its memory is not known (--memory)"
    if need <= there:
        return f"Fits: {size(need)} a device, {size(there)} there"
    most = largest_batch(q, there)
    if most:
        return f"Does not fit: {size(need)} a device, {size(there)} there; --batch {most} would"
    again = replace(q, step=replace(q.step, recomputes=True))
    hint = ", or --recompute" if largest_batch(again, there) else ""
    return (
        f"Does not fit: {size(need)} a device, {size(there)} there, whatever the batch; expected"
        f" more devices under fsdp or tp{hint}"
    )


def _held(q: TrainQuestion, n_batch: int | None = None) -> float:
    step = q.step if n_batch is None else replace(q.step, n_batch=n_batch)
    return held_bytes(q.shape, step, q.layout.n_shards, q.layout.n_split)


def largest_batch(q: TrainQuestion, there: float) -> int:
    """Return the largest batch of whole micro-batches a device's memory holds, 0 for none."""
    part = q.step.n_micro * q.layout.dp * q.layout.fsdp
    low, high = 0, q.step.n_batch // part
    while low < high:
        middle = (low + high + 1) // 2
        if _held(q, middle * part) <= there:
            low = middle
        else:
            high = middle - 1
    return low * part


def _evidence(q: TrainQuestion, f: TrainForecast, laws: Laws) -> Iterator[str]:
    kind = "published runs on boards" if q.kind == "board" else f"a sweep on {laws.machine}"
    assumed = (
        "; its range is a factor of 2 either way, assumed: no other processor ran the sweep"
        if q.kind == "processor" and f.evidence == "spec sheet only"
        else ""
    )
    yield f"Evidence: {f.evidence}; laws {laws.digest} fitted on {kind}{assumed}"
    if q.shape.n_experts > 1:
        yield "No run trained a mixture of experts: its cost is taken as that of what a token uses"
    if q.kind == "processor":
        yield f"Joules are time by that power: their range is the time's alone, at {LEVEL:.0%}"
    else:
        if q.layout.is_modelled and q.speedup is None:
            yield f"What {q.layout} loses is modelled: published runs were in pipelines at most"
        yield "Board power: processors, fans and supplies are outside"


def _sentence(note: str) -> str:
    text = note[0].upper() + note[1:]
    return text if text.endswith(".") else f"{text}."


def _record(a: Asked, f: TrainForecast, there: float | None) -> dict[str, Any]:
    q = a.question
    return {
        "host": a.host.name,
        "n_devices": q.layout.n_devices,
        "strategy": str(q.layout),
        "precision": q.step.precision,
        "n_batch": q.step.n_batch,
        "n_length": q.step.n_length,
        "n_micro": q.step.n_micro,
        "recomputes": q.step.recomputes,
        "power_limit_w": q.device.watts,
        "seconds": f.seconds.value,
        "seconds_low": f.seconds.low,
        "seconds_high": f.seconds.high,
        "joules": f.joules.value,
        "joules_low": f.joules.low,
        "joules_high": f.joules.high,
        "level": LEVEL,
        "n_steps": a.n_steps,
        "total_seconds": f.seconds.value * a.n_steps,
        "total_joules": f.joules.value * a.n_steps,
        **bill(f.joules.value * a.n_steps, a.costs),
        "watts": f.watts,
        "is_metered": f.is_metered,
        "efficiency": f.efficiency,
        "flops": f.flops,
        "bytes": f.bytes,
        "device_bytes": f.device_bytes,
        "available_bytes": there,
        "fits": there is None or f.device_bytes <= there,
        "evidence": f.evidence,
    }


_Unit = tuple[float, str]


def _of(r: Range, unit: _Unit) -> str:
    scale, name = unit
    value, low, high = (rate(x / scale) for x in (r.value, r.low, r.high))
    return f"{value} {name} ({low} - {high})"


def _time(r: Range) -> _Unit:
    return (1e-3, "ms") if r.value < 1 else (1.0, "s")


def _energy(r: Range) -> _Unit:
    if r.value >= _JOULES_A_KWH / 10:
        return (_JOULES_A_KWH, "kWh")
    return (3600.0, "Wh") if r.value >= 3600 else (1.0, "J")
