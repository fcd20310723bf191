"""How plans are shown: a verdict, a small table of alternatives, a drawing."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from tokcast.cli.names import short_name
from tokcast.cli.placed_report import machine_words, placement_flags
from tokcast.cli.plan import Planned
from tokcast.cli.render import GIB, Report, Table, count, rate, size
from tokcast.predictor.placement.choose import Plan
from tokcast.predictor.placement.fit import MARGIN_BYTES
from tokcast.predictor.prediction import Prediction

# Rows of the table that stand for the sweep, beside those that are shown anyhow.
N_SHOWN = 7


def report(p: Planned) -> Report:
    """Return what was found, the plan to use first."""
    shown = _shown(p)
    return Report(
        verdict=_verdict(p),
        tables=(_table(p, shown),),
        notes=_notes(p),
        data=_data(p),
        records=[_record(p, plan) for plan in (*p.sweep, *p.others)],
        command=_command(p),
    )


def title(p: Planned) -> str:
    """Return the model and the machine."""
    model = f"{short_name(p.spec.name)} {p.spec.file_type}".strip()
    where = machine_words(p.placing.machine.devices)
    return f"{model} on {where} ({p.run.runtime}, {p.run.backend})"


def _range(found: Prediction) -> str:
    return f"{rate(found.low)} - {rate(found.high)}"


def _verdict(p: Planned) -> tuple[str, ...]:
    at = f"at a context of {count(p.n_context)}"
    if p.best is None:
        return title(p), f"  Does not fit {at}, however it is placed: {_lacking(p)}"
    decode = p.best.decode
    found = f"  Best plan: {name_of(p.best)}, {rate(decode.tok_per_s)} tok/s generating"
    lines = [title(p), f"{found} ({_range(decode)})"]
    if p.prefill is not None:
        read = f"{rate(p.prefill.tok_per_s)} tok/s reading ({_range(p.prefill)})"
        lines.append(f"  {read}; {_held(p.best)} {at}")
    wish = p.min_tok_per_s
    if wish is not None and not p.is_met:
        lines.insert(1, f"  No plan that fits reaches {wish:g} tok/s {at}")
    elif wish is not None and p.leanest is not None and p.leanest is not p.best:
        lean = p.leanest
        lines.append(
            f"  Least on the cards for {wish:g} tok/s: {name_of(lean)}, {size(lean.cards_bytes)},"
            f" {rate(lean.decode.tok_per_s)} tok/s"
        )
    return tuple(lines)


def _lacking(p: Planned) -> str:
    if p.placing.machine.processor.memory_bytes is None and p.placing.machine.cards:
        least = min(plan.cards_bytes for plan in p.sweep)
        there = sum(c.memory_bytes or 0.0 for c in p.placing.machine.cards)
        return f"cards of {size(there)} would have to hold {size(least)} at least"
    least = min(sum(m.total_bytes for m in plan.memory) for plan in p.sweep)
    devices = p.placing.machine.devices[: 1 if p.placing.machine.is_unified else None]
    there = sum(d.memory_bytes or 0.0 for d in devices)
    return f"it needs {size(least)}, all devices together have {size(there)}"


def _held(plan: Plan) -> str:
    return ", ".join(f"{m.device.name} {size(m.total_bytes)}" for m in plan.memory)


def name_of(plan: Plan) -> str:
    """Return a plan's flags in short."""
    placement = plan.placement
    if not placement.flags:
        return "on the processor"
    if plan.n_away == 0:
        return "all on the card" if placement.cpu == 1 else "all on the cards"
    words = []
    if placement.options.overrides:
        words.append("as --fit")
    if placement.n_gpu_layers < len(placement.layer_devices):
        words.append(f"-ngl {placement.n_gpu_layers}")
    if placement.n_cpu_moe:
        words.append(f"-ncmoe {placement.n_cpu_moe}")
    if placement.options.no_kv_offload:
        words.append("-nkvo")
    if placement.options.split_mode == "none" and placement.cpu > 1:
        words.append(f"-sm none -mg {placement.options.main_gpu}")
    return " ".join(words) or "as --fit"


def _shown(p: Planned) -> list[Plan]:
    """Return the sweep's ends, what stands out, and some steps between; then the others."""
    steps = p.sweep
    wanted = {0, len(steps) - 1}
    wanted |= {round(i * (len(steps) - 1) / (N_SHOWN - 1)) for i in range(N_SHOWN)}
    first = next((i for i, plan in enumerate(steps) if plan.fits is not False), None)
    if first is not None:
        wanted |= {max(first - 1, 0), first}
    marked = [plan for pair in (p.cliff or (),) for plan in pair]
    shown = [
        plan
        for i, plan in enumerate(steps)
        if i in wanted or any(plan is each for each in (*marked, p.leanest, p.best))
    ]
    return [*shown, *_distinct(p)]


def _distinct(p: Planned) -> list[Plan]:
    """Return plans of other kinds that fit and that the sweep does not have already."""
    seen = {plan.placement.part_devices for plan in p.sweep if not plan.placement.options.overrides}
    return [
        plan
        for plan in p.others
        if plan is p.best
        or (plan.fits is not False and plan.placement.part_devices not in seen)
        or plan.placement.options.no_kv_offload
    ]


def _table(p: Planned, shown: Sequence[Plan]) -> Table:
    bought = _bought(shown)
    rows = tuple(
        (
            name_of(plan) + (" *" if plan is p.best else ""),
            size(plan.cards_bytes),
            size(plan.host_bytes),
            rate(plan.decode.tok_per_s),
            _range(plan.decode),
            bought.get(i, ""),
            {True: "yes", False: "no", None: "?"}[plan.fits],
        )
        for i, plan in enumerate(shown)
    )
    level = f"{100 * shown[0].decode.level:.0f} % range"
    columns = ("plan", "on cards", "main memory", "tok/s", level, "a GiB buys", "fits")
    return Table(columns, rows, frozenset(columns[1:-1]))


def _bought(shown: Sequence[Plan]) -> dict[int, str]:
    """Return what a GiB more on the cards buys, from the row below to a row."""
    found = {}
    for i, (more, less) in enumerate(pairwise(shown)):
        if more.n_away is None or less.n_away is None:
            continue
        extra = (more.cards_bytes - less.cards_bytes) / GIB
        if extra > 0:
            found[i] = f"{(more.decode.tok_per_s - less.decode.tok_per_s) / extra:+.2f}"
    return found


def _notes(p: Planned) -> tuple[str, ...]:
    notes = []
    if p.cliff is not None:
        a, b = p.cliff
        lost = 100 * (1 - b.decode.tok_per_s / a.decode.tok_per_s)
        notes.append(
            f"Cliff: from {name_of(a)} to {name_of(b)} generating loses {lost:.0f} % for"
            f" {size(a.cards_bytes - b.cards_bytes)}."
        )
    n_tried = len(p.sweep) + len(p.others)
    if p.best is not None and n_tried > 1:
        margin = f", with {size(MARGIN_BYTES)} of each card free as llama.cpp leaves it"
        notes.append(
            f"* chosen of {n_tried} plans tried: the fastest that fits"
            f"{margin if _has_margin(p) else ''}."
        )
    warnings = p.best.decode.warnings if p.best else ()
    notes += [
        f"Note: {w.rstrip('.')}." for w in dict.fromkeys((*p.placing.machine.notes, *warnings))
    ]
    return tuple(notes)


def _has_margin(p: Planned) -> bool:
    return bool(p.placing.machine.cards) and not p.placing.machine.is_unified


def _command(p: Planned) -> str:
    if p.best is None:
        return ""
    return f"Run it: llama-server -m MODEL {placement_flags(p.best.placement, p.n_context)}"


def _record(p: Planned, plan: Plan) -> dict[str, Any]:
    placement = plan.placement
    return {
        "plan": name_of(plan),
        "flags": " ".join(placement.flags),
        "n_gpu_layers": placement.n_gpu_layers,
        "n_cpu_moe": placement.n_cpu_moe,
        "cards_bytes": plan.cards_bytes,
        "host_bytes": plan.host_bytes,
        "tok_per_s": plan.decode.tok_per_s,
        "low": plan.decode.low,
        "high": plan.decode.high,
        "level": plan.decode.level,
        "fits": plan.fits,
        "is_best": plan is p.best,
    }


def _data(p: Planned) -> dict[str, Any]:
    best, lean = p.best, p.leanest
    return {
        "model": {"name": p.spec.name, "file_type": p.spec.file_type, "source": p.spec.source},
        "devices": [
            {
                "name": d.name,
                "host": d.host.name,
                "bytes_per_s": d.host.bytes_per_s,
                "memory_bytes": d.memory_bytes,
                "is_assumed": d.is_assumed,
            }
            for d in p.placing.machine.devices
        ],
        "n_context": p.n_context,
        "n_depth": p.n_depth,
        "min_tok_per_s": p.min_tok_per_s,
        "is_met": p.is_met,
        "best": None if best is None else _record(p, best),
        "leanest": None if lean is None else _record(p, lean),
        "plans": [_record(p, plan) for plan in (*p.sweep, *p.others)],
        "warnings": list(p.placing.machine.notes),
    }
