"""How a choice is shown: the pick and its command, a table of the best, what rules others out."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tokcast.cli.render import Report, Table, count, rate, size
from tokcast.cli.select import Selection
from tokcast.cli.select_data import decode_energy, record, selection_data, selection_records
from tokcast.cli.select_request import USUAL_MIN_DECODE
from tokcast.cli.select_words import device, interval, loss, miss, model_of, run_command, seconds
from tokcast.predictor.errors import InputError
from tokcast.predictor.select.quality import Figure, cache_loss
from tokcast.predictor.select.ranking import best_of_each, is_as_published, is_unbeaten
from tokcast.predictor.select.rows import Row
from tokcast.predictor.select.types import GOOD_LOSS

_ORDER = {
    "size": "Most parameters first, types that lose at most"
    f" {100 * (GOOD_LOSS - 1):.0f} % before all others, of a model the least lossy type; more"
    " parameters are not always better.",
    "speed": "Fastest generation first.",
    "quality": "Least lossy type first, types compared on the same models.",
    "turn": "Shortest turn first.",
    "memory": "Least memory first.",
}
_MOST_UNREAD = 3


def _figure(f: Figure) -> str:
    spread = f" ({f.low:.3f} - {f.high:.3f})" if f.low != f.high else ""
    of = f.of if not f.of.endswith("models") else f"{f.n} {f.of}"
    made = "with" if f.imatrix else "without or not said"
    beside = "" if f.reference == "16-bit" else f" of {f.reference}"
    return f"perplexity x {f.value:.3f}{beside}{spread}, {of}, imatrix {made}"


def _verdict(s: Selection) -> tuple[str, ...]:
    row = s.pick
    if row is None:
        return _nothing(s)
    c = row.candidate
    spare = "" if row.spare_bytes is None else f", {size(row.spare_bytes)} left"
    turn = "" if row.turn is None else f"; a turn takes {seconds(row.turn.later_s)}"
    figure = row.loss.ppl_ratio
    published = _figure(figure) if figure is not None else "nothing published"
    if is_as_published(row):
        published = "the type that the model was published in"
    return (
        f"{model_of(row)} {c.quant} on {device(s)} ({row.run.runtime}, {row.run.backend})",
        f"  {rate(row.decode.tok_per_s)} tok/s generating ({interval(row)}), first token after"
        f" {seconds(row.ttft_s)}{turn}",
        f"  Needs {size(row.need_bytes)} at a context of {count(s.wishes.context)}{spare}"
        f"{_energy(s, row)}",
        f"  Quantization: {c.bits_per_weight:.2f} bits a weight; {published}",
    )


def _energy(s: Selection, row: Row) -> str:
    energy = decode_energy(s, row)
    if energy is None:
        return ""
    ends = f"{energy.low:.2g} - {energy.high:.2g}; {energy.evidence}"
    return f"; {energy.joules_per_token:.2g} J a token ({ends})"


def _nothing(s: Selection) -> tuple[str, ...]:
    if not s.rows:
        return ("Nothing to choose from.",)
    row = s.rows[0]
    return (
        f"Nothing of {len(s.rows):,} candidates meets the wishes on {device(s)}.",
        f"  Nearest: {model_of(row)} {row.candidate.quant}: {'; '.join(map(miss, row.misses))}",
    )


def _table(s: Selection, rows: Sequence[Row], on_front: set[int], one_model: bool) -> Table:
    level = f"{100 * s.wishes.level:.0f} % range"
    wait = "turn" if s.wishes.preset is not None else "wait"
    columns = ("file" if one_model else "model", "quant", "bits", "tok/s", level, wait, "left")
    cells = tuple(
        (
            row.candidate.address.rpartition("/")[2] if one_model else model_of(row),
            row.candidate.quant,
            f"{row.candidate.bits_per_weight:.1f}",
            rate(row.decode.tok_per_s),
            interval(row),
            seconds(row.turn.later_s if row.turn is not None else row.ttft_s),
            "?" if row.spare_bytes is None else f"{row.spare_bytes / 1024**3:.1f}G",
            loss(row) + (" *" if i in on_front else ""),
        )
        for i, row in enumerate(rows)
    )
    return Table((*columns, "loss"), cells, frozenset((*columns[2:],)))


def _ruled_out(s: Selection) -> str:
    found = Counter(m.wish for row in s.rows for m in row.misses)
    reasons = ", ".join(f"{n:,} by {wish}" for wish, n in found.most_common())
    said = f"{s.n_feasible:,} of {len(s.rows):,} candidates meet the wishes"
    return f"{said}; ruled out: {reasons}." if reasons else f"{said}."


def _notes(s: Selection) -> tuple[str, ...]:
    notes = [_ruled_out(s), _ORDER[s.goal]] if s.rows else []
    if s.calibration:
        notes.append(f"Calibrated: {s.calibration}.")
    if s.rows and s.is_usual_speed:
        notes.append(f"At least {USUAL_MIN_DECODE:g} tok/s is taken for granted (--min-decode).")
    if s.rows:
        notes.append(
            "loss: published perplexity beside 16 bits, the median over models, other ones for"
            " another type; blank where nothing was published. *: nothing else is better in every"
            " respect."
        )
    cache = cache_loss(s.wishes.type_k, s.wishes.type_v)
    for figure in cache.figures[:1]:
        kinds = f"{s.wishes.type_k}/{s.wishes.type_v}".lower()
        notes.append(f"K/V cache {kinds}: {_plain(figure)} beside a 16-bit cache.")
    preset = s.wishes.preset
    if preset is not None:
        notes.append(
            f"Workload {preset.name}: prompt {preset.first_input}, then {preset.turn_input} new"
            f" and {preset.output} answered a turn, {preset.turns} turns, medians of"
            f" {preset.n_requests:,} requests ({preset.profile})."
        )
    notes += [f"Note: {note.rstrip('.')}." for note in (*s.notes, *s.found.warnings)]
    return (*notes, *_looked(s), *_unread(s))


def _plain(f: Figure) -> str:
    words = {"ppl_ratio": "perplexity x", "kld_mean": "mean KLD", "same_top_pct": "same top, %"}
    return f"{words[f.metric]} {f.value:.4g} ({f.low:.4g} - {f.high:.4g}, n = {f.n})"


def _looked(s: Selection) -> tuple[str, ...]:
    return () if s.rows else (f"Looked at: {', '.join(s.found.looked_at)}.",)


def _unread(s: Selection) -> tuple[str, ...]:
    unread = s.found.unread
    lines = [f"Not read: {u.why}." for u in unread[:_MOST_UNREAD]]
    if len(unread) > _MOST_UNREAD:
        lines.append(f"Not read: {len(unread) - _MOST_UNREAD} more; -o json lists them.")
    return tuple(lines)


def _where_to_find(row: Row) -> tuple[str, ...]:
    c = row.candidate
    if c.origin != "catalogue":
        return ()
    kind = "mlx" if c.spec.format == "mlx" else "gguf"
    asked = f'tokcast select --search "{c.model} {kind}"'
    return (f"The catalogue names no file to download; {asked} looks for one.",)


def _others_table(selections: Sequence[Selection]) -> Table:
    columns = ("host", "pick", "quant", "tok/s", "range", "left")
    rows = []
    for s in selections:
        row = s.pick
        if row is None:
            rows.append((device(s), "none meets the wishes", "", "", "", ""))
            continue
        left = "?" if row.spare_bytes is None else f"{row.spare_bytes / 1024**3:.1f}G"
        speed = rate(row.decode.tok_per_s)
        rows.append((device(s), model_of(row), row.candidate.quant, speed, interval(row), left))
    return Table(columns, tuple(rows), frozenset(columns[3:]))


def choice(
    s: Selection, others: Sequence[Selection], top: int, quants: bool, with_data: bool
) -> Report:
    """Return the report of a choice, and of the same choice on other hosts.

    `with_data`: with every candidate as data, which takes longer than choosing.
    """
    names = {row.candidate.model for row in s.rows}
    one_model = len(names) == 1
    shown = list(s.rows) if quants or one_model else best_of_each(s.rows)
    feasible = [row for row in shown if row.is_feasible][:top]
    marked = {i for i, row in enumerate(feasible) if is_unbeaten(row, s.rows)}
    tables = [_table(s, feasible, marked, one_model)] if feasible else []
    if others:
        tables.append(_others_table((s, *others)))
    pick, records, elsewhere = s.pick, list[dict[str, Any]](), list[dict[str, Any]]()
    if with_data:
        records = selection_records(s)
        elsewhere = [record(o, row, False) for o in others for row in o.rows]
    return Report(
        verdict=_verdict(s),
        tables=tuple(tables),
        notes=(*_notes(s), *(_where_to_find(pick) if pick is not None else ())),
        data=selection_data(s, records, others, None if pick is None else run_command(s, pick)),
        records=[*records, *elsewhere],
        command=f"Run it: {run_command(s, pick)}" if pick is not None else "",
    )


def why(s: Selection, name: str, top: int) -> Report:
    """Return what rules a model's files out, and by how much; raises InputError for no match."""
    wanted = name.casefold()
    rows = [
        row
        for row in s.rows
        if wanted in row.candidate.address.casefold()
        or wanted in row.candidate.spec.name.casefold()
    ]
    if not rows:
        raise InputError(f"--why {name!r}: no candidate is called so; {len(s.rows)} were looked at")
    n_good = sum(row.is_feasible for row in rows)
    place = {id(row): i + 1 for i, row in enumerate(s.rows)}
    cells = tuple(
        (
            row.candidate.address,
            f"{place[id(row)]:,}",
            "; ".join(map(miss, row.misses)) or "meets every wish",
        )
        for row in rows[:top]
    )
    records = [record(s, row, False) for row in rows]
    return Report(
        verdict=(
            f"{n_good} of {len(rows)} files called {name!r} meet the wishes on {device(s)}",
            *((f"  The pick is {s.pick.candidate.address}",) if s.pick else ()),
        ),
        tables=(Table(("candidate", "place", "what rules it out"), cells, frozenset({"place"})),),
        notes=(f"Places are of {len(s.rows):,}. {_ORDER[s.goal]}",),
        data=selection_data(s, records, (), None),
        records=records,
    )
