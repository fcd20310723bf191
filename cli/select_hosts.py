"""The other way round: which hosts run a model fast enough."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tokcast.cli.options import host_of
from tokcast.cli.render import Report, Table, rate
from tokcast.cli.select import Selection, candidates_of, selection
from tokcast.cli.select_data import record, selection_data
from tokcast.cli.select_request import Request, formats_of, lines_of, wishes_of
from tokcast.cli.select_words import device, interval, miss, model_of, seconds
from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host
from tokcast.predictor.select.candidate import Found
from tokcast.predictor.select.ranking import goal_of
from tokcast.predictor.select.rows import Row

ALL = "all"
FORMATS = ("gguf", "mlx")


def _hosts(text: str) -> Iterator[tuple[Host, tuple[str, ...]]]:
    if text.lower() == ALL:
        from tokcast.hosts.registry import chips

        # Rows of an unknown number of GPU cores exist for measurements that do not say it.
        yield from ((host, ()) for host in chips() if "unknown" not in host.name)
        return
    for name in lines_of(text):
        yield host_of(name, None, None, None)


def _for_host(found: Found, request: Request, host: Host) -> Found:
    """Return the candidates that a runtime of the host reads."""
    formats = formats_of(request.runtime, host)
    return replace(found, candidates=tuple(c for c in found.candidates if c.spec.format in formats))


def _least_first(pair: tuple[Selection, Row]) -> tuple[bool, float]:
    row = pair[1]
    far = max((m.factor for m in row.misses), default=0.0)
    return (not row.is_feasible, far if row.misses else row.decode.tok_per_s)


def hosts_report(request: Request, text: str, top: int) -> tuple[Report, int]:
    """Return the hosts on which a model meets the wishes, the slowest that does first."""
    if not (request.addresses or request.list_file):
        raise InputError("--hosts: expected a MODEL to run on them, such as qwen3-8b@Q4_K_M")
    wishes, is_usual = wishes_of(request)
    goal = goal_of(request.sort)
    found = candidates_of(request, FORMATS)
    selections = []
    for host, notes in _hosts(text):
        there, readable = replace(request, host=host.name), _for_host(found, request, host)
        selections.append(selection(there, host, notes, readable, wishes, goal, is_usual))
    best = sorted(((s, s.rows[0]) for s in selections if s.rows), key=_least_first)
    if not best:
        raise InputError(f"no model could be read: {'; '.join(u.why for u in found.unread)}")
    n_good = sum(row.is_feasible for _, row in best)
    return _report(best, n_good, top), 0 if n_good else 1


def _report(best: Sequence[tuple[Selection, Row]], n_good: int, top: int) -> Report:
    first = best[0][0]
    limit = "" if first.wishes.min_decode is None else f" at {first.wishes.min_decode:g} tok/s"
    models = {row.candidate.model for _, row in best}
    name = model_of(best[0][1]) if len(models) == 1 else "a model asked about"
    columns = ("host", "quant", "tok/s", "range", "wait", "left", "")
    rows = tuple(
        (
            device(s),
            row.candidate.quant,
            rate(row.decode.tok_per_s),
            interval(row),
            seconds(row.ttft_s),
            "?" if row.spare_bytes is None else f"{row.spare_bytes / 1024**3:.1f}G",
            "; ".join(map(miss, row.misses)),
        )
        for s, row in best[:top]
    )
    records = [record(s, row, False) for s, row in best]
    return Report(
        verdict=(f"{n_good} of {len(best)} hosts run {name}{limit} with every wish met",),
        tables=(Table(columns, rows, frozenset(columns[2:6])),),
        notes=("The least that does comes first, then what comes nearest.",),
        data={**selection_data(first, records, (), None), "host": None, "pick": None},
        records=records,
    )
