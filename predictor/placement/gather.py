"""All of a placed model's time, by what it goes to, before the placement's own scales."""

from collections import Counter
from collections.abc import Iterator, Sequence

from tokcast.predictor.placement.company import CROSSING_SECONDS, Company
from tokcast.predictor.placement.inventory import INPUT, Part
from tokcast.predictor.placement.plan import ROWS, Placement, is_pipelined
from tokcast.predictor.placement.route import route
from tokcast.predictor.placement.units import (
    STREAMED_FROM,
    Amount,
    Timer,
    Unit,
    Use,
    link_bytes_per_s,
    n_micro_batches,
    passes,
    stream_bytes,
)

Times = dict[Use, Amount]
# How much of the work of the faster cards goes on beside the slowest, of what could: best of
# 0, 0.25, 0.5, 0.75 and 1 on prompts of several micro-batches with each machine left out.
OVERLAPPED = 0.75


def sole_device(placement: Placement, timer: Timer) -> int | None:
    """Return the device that computes everything but look-ups, None where several do."""
    used = set(placement.kv_devices) | {
        at
        for part, at in zip(placement.parts, placement.part_devices, strict=True)
        if part.layer != INPUT
    }
    if len(used) != 1 or ROWS in used:
        return None
    device = used.pop()
    # Beside a card a processor is one by its memory, and a long prompt is the card's.
    is_beside = device == placement.cpu and timer.streaming_card is not None
    return None if is_beside else device


def company_of(timer: Timer, times: Times) -> Company:
    """Return beside what the devices of a placed model work."""
    roles = {use.role for use in times}
    load, run = timer.question.workload, timer.question.run
    if roles & {"cpu", "streamed"}:
        return Company(load.phase, run.runtime, "cpu")
    return Company(load.phase, run.runtime, "rows" if "rows" in roles else "cards")


def gather(timer: Timer, placement: Placement) -> Times:
    """Return the seconds of a whole token or prompt that go to each use."""
    parts = placement.parts
    tables = [timer.table(parts, device.index) for device in placement.devices]
    found = [
        tables[at][i] if at != ROWS else _shared(timer, placement, parts[i])
        for i, at in enumerate(placement.part_devices)
    ]
    is_kept = placement.options.no_kv_offload
    for layer in placement.spec.layers:
        found.append(timer.layer(layer, placement.kv_devices[layer.index], is_kept))
    times = _added(found)
    if is_pipelined(placement):
        times = _overlapped(times, n_micro_batches(timer.question.workload))
    return _added([tuple(_handed_over(timer, placement))], times)


def _added(found: Sequence[tuple[Unit, ...]], times: Times | None = None) -> Times:
    """Return the units of parts added up; equal parts are the same tuple and are counted first."""
    times = {} if times is None else times
    by_number = {id(units): units for units in found}
    for number, count in Counter(map(id, found)).items():
        for use, amount in by_number[number]:
            so_far = times.get(use)
            if so_far is None:
                so_far = times[use] = Amount()
            so_far.add(amount, count)
    return times


def _shared(timer: Timer, placement: Placement, part: Part) -> tuple[Unit, ...]:
    """Return the units of a matrix whose rows cards share: those of the card that is last."""
    slowest: list[Unit] = []
    for card, share in enumerate(placement.row_shares):
        units = [(use, _part_of(amount, share)) for use, amount in timer.part(part, card)]
        if sum(a.seconds for _, a in units) > sum(a.seconds for _, a in slowest):
            slowest = units
    return tuple(slowest)


def _part_of(amount: Amount, share: float) -> Amount:
    found = Amount()
    found.add(amount, share)
    return found


def _is_long(timer: Timer) -> Iterator[bool]:
    """Yield of each pass whether a card computes what the processor keeps."""
    for load in passes(timer.question.workload):
        n_tokens = 1 if load.phase == "decode" else min(load.n_prompt, load.n_ubatch)
        yield timer.streaming_card is not None and n_tokens >= STREAMED_FROM


def _overlapped(times: Times, n_batch: int) -> Times:
    """Return times where cards work at once: the slowest all the time, the rest on one batch.

    Published runs show part of that: `OVERLAPPED` of what could be hidden is.
    """
    by_card: dict[int, float] = {}
    for use, amount in times.items():
        by_card[use.device] = by_card.get(use.device, 0.0) + amount.seconds
    slowest = max(by_card, key=lambda card: by_card[card])
    share = 1 - OVERLAPPED * (1 - 1 / n_batch)
    return {
        use: amount if use.device == slowest else _part_of(amount, share)
        for use, amount in times.items()
    }


def _handed_over(timer: Timer, placement: Placement) -> Iterator[Unit]:
    """Yield what hand-overs between devices take: a wait each, and activations over the link."""
    load = timer.question.workload
    home = next(iter(placement.devices))
    for part_of_it, is_long in zip(passes(load), _is_long(timer), strict=True):
        way = route(placement, is_long)
        n = n_micro_batches(part_of_it)
        for use, count in (
            (timer.use("crossing", placement.cpu, "hand-overs", "", "overhead"), way.n_crossings),
            (timer.use("hop", home.index, "hand-overs", "", "overhead"), way.n_hops),
            (timer.use("rows", home.index, "shared rows", "", "overhead"), way.n_shared),
        ):
            if count:
                yield use, Amount(n * count * CROSSING_SECONDS)
        moved = (way.n_crossings + way.n_hops) * stream_bytes(timer.spec, part_of_it)
        if moved:
            use = timer.use("link", home.index, "activations", "", "memory")
            yield use, Amount(moved / link_bytes_per_s(home.host), moved)
