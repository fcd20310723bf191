"""`tokcast measure list|show|export|import|check`: the runs that are kept."""

from collections import Counter
from pathlib import Path

from tokcast.cli.measure import figure_table
from tokcast.cli.progress import say
from tokcast.cli.render import Report, Table, check_format, cut, rate, render
from tokcast.cli.runs_data import run_data, run_records
from tokcast.measurements.export import grouped, rows, to_csv
from tokcast.measurements.figures import figures
from tokcast.measurements.importers import Imported, read_file
from tokcast.measurements.record import RunRecord
from tokcast.measurements.schema import Measurement
from tokcast.measurements.store import Store, now, open_store
from tokcast.predictor.errors import InputError

_SHOWN_SKIPS = 5


def _open() -> Store:
    store = open_store()
    if store.note:
        say(store.note)
    return store


def _speed(group: list[RunRecord], phase: str) -> str:
    found = next((f for f in figures(group) if f.test.phase == phase), None)
    if found is None:
        return "-"
    return rate(found.tok_per_s) + ("" if found.verdict.stable else " ?")


def _listing(runs: tuple[RunRecord, ...]) -> Table:
    columns = ("run", "when", "model", "launches", "generating", "reading", "host")
    found = [
        (
            group[0].id,
            group[0].created[:16].replace("T", " "),
            cut(group[0].model.name, 40),
            str(len(group)),
            _speed(group, "decode"),
            _speed(group, "prefill"),
            f"{group[0].host} ({group[0].setup.backend})",
        )
        for group in grouped(runs)
    ]
    return Table(columns, tuple(found), frozenset({"launches", "generating", "reading"}))


def run_list(text: str | None, output: str) -> int:
    """Print the runs; exit code 1 when there is none."""
    check_format(output)
    store = _open()
    runs, imported = store.runs(text), store.imported()
    batches = Counter(batch for batch, _ in imported)
    notes = tuple(f"{batch}: {n} imported figures." for batch, n in batches.items())
    where = f" with {text!r} in id, host or model" if text else ""
    verdict = f"{len(runs)} launch{'es' * (len(runs) != 1)}{where} in {store.path}"
    tables = (_listing(runs),) if runs else ()
    if any(not f.verdict.stable for group in grouped(runs) for f in figures(group)):
        notes = ("A ? marks a figure not to be trusted; tokcast measure show says why.", *notes)
    records = run_records(runs)
    data = {"runs": [run_data(r) for r in runs], "imported": dict(batches)}
    print(render(Report((verdict,), tables, notes, data, records), output))
    return 0 if runs or imported else 1


def run_show(id_: str, output: str) -> int:
    """Print one run with its samples, its setup and what disturbed it."""
    check_format(output)
    found = [r for r in _open().runs() if r.id.startswith(id_)]
    if len(found) != 1:
        what = "no run" if not found else f"{len(found)} runs"
        raise InputError(f"{id_}: {what} of that id; tokcast measure list shows them")
    (run,) = found
    s = run.setup
    samples = tuple(
        (
            series.test.label,
            str(n),
            f"{1e3 * sample.seconds:.2f}",
            rate(series.test.n / sample.seconds),
            "-" if sample.pressure is None else f"{100 * sample.pressure:.1f} %",
            "; ".join(sample.disturbed),
        )
        for series in run.series
        for n, sample in enumerate(series.samples, 1)
    )
    columns = ("test", "sample", "ms", "tok/s", "pressure", "disturbed by")
    facts = (
        f"{s.version}; {s.build}",
        f"{s.n_threads} threads, batch {s.n_batch}, micro-batch {s.n_ubatch}, flash attention"
        f" {s.flash_attention}, cache {s.type_k}/{s.type_v}, load mode {s.load_mode}.",
    )
    report = Report(
        (f"{run.model.name} on {run.host}, {run.created[:16].replace('T', ' ')} UTC",),
        (
            figure_table(figures([run])),
            Table(columns, samples, frozenset({"sample", "ms", "tok/s", "pressure"})),
        ),
        facts,
        run_data(run),
        run_records([run]),
    )
    print(render(report, output))
    return 0


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; expected a file to write") from error


def run_export(text: str | None, to: str | None) -> int:
    """Print runs and imported figures as CSV in the interchange schema, or write them."""
    store = _open()
    wanted = (text or "").lower()
    imported = [m for _, m in store.imported() if wanted in f"{m.chip} {m.model}".lower()]
    found: tuple[Measurement, ...] = (*rows(store.runs(text)), *imported)
    if not found:
        raise InputError(f"nothing to export{f' with {text!r}' if text else ''}; see measure list")
    made = to_csv(found)
    if to is None:
        print(made, end="")
        return 0
    _write(to, made)
    print(f"{len(found)} figures written to {to}")
    return 0


def _counted(found: Imported, chip: str | None) -> tuple[Measurement, ...]:
    from dataclasses import replace

    if chip is None:
        return found.rows
    return tuple(replace(m, chip=chip) for m in found.rows)


def run_import(files: list[str], host: str | None, output: str) -> int:
    """Keep the figures of other programs' output; exit code 1 when none was found."""
    from tokcast.hosts.match import find

    check_format(output)
    chip = find(host).name if host else None
    store = _open()
    listed, notes, records = [], [], []
    total = 0
    for name in files:
        found = read_file(Path(name))
        figures_ = _counted(found, chip)
        n_new = store.add_imported(figures_, f"{Path(name).name} {now()[:10]}")
        total += len(figures_)
        known = sum(bool(m.model_id and m.file_type) for m in figures_)
        chips = sorted({m.chip or "unknown" for m in figures_})
        cells = (name, found.kind, len(figures_), n_new, known, len(found.skipped))
        listed.append((*map(str, cells), ", ".join(chips)))
        keys = ("file", "format", "figures", "new", "models_known", "skipped")
        records.append({**dict(zip(keys, cells, strict=True)), "chips": chips})
        notes += [f"{name}, {s.where}: {s.reason}" for s in found.skipped[:_SHOWN_SKIPS]]
    columns = ("file", "format", "figures", "new", "model known", "skipped", "chip")
    right = frozenset(columns[2:6])
    verdict = f"{total} figure{'s' * (total != 1)} read from {len(files)} file" + "s" * (
        len(files) != 1
    )
    table = Table(columns, tuple(listed), right)
    print(render(Report((verdict,), (table,), tuple(notes), {"files": records}, records), output))
    return 0 if total else 1


def _problems(found: tuple[Measurement, ...]) -> list[tuple[str, str, str]]:
    """Return what a fit would not take, by the rules of cleaning."""
    from tokcast.fits.observations import facts_of
    from tokcast.measurements.cleaning import check

    bad = []
    for m in found:
        rule = check(m, facts_of(m))
        if rule is not None:
            test = f"{m.phase} at depth {m.n_depth or 0:g}"
            bad.append((m.model or m.model_id, test, f"{rule.name}: {rule.reason}"))
    return bad


def run_check(file: str | None, output: str) -> int:
    """Print what is wrong with the store's figures or a file's; exit code 1 if anything is."""
    check_format(output)
    if file is not None:
        read = read_file(Path(file))
        bad = [(s.where, "", s.reason) for s in read.skipped] + _problems(read.rows)
        n, what = len(read.rows), file
    else:
        store = _open()
        runs = store.runs()
        bad = [("store", "", text) for text in store.check()]
        bad += [
            (group[0].model.name, f.test.label, "; ".join(f.verdict.reasons))
            for group in grouped(runs)
            for f in figures(group)
            if not f.verdict.stable
        ]
        bad += _problems(tuple(m for _, m in store.imported()))
        n, what = len(rows(runs)) + len(store.imported()), str(store.path)
    keys = ("what", "test", "problem")
    table = (Table(keys, tuple(bad)),) if bad else ()
    verdict = f"{n} figures in {what}: " + (f"{len(bad)} problems" if bad else "nothing wrong")
    records = [dict(zip(keys, b, strict=True)) for b in bad]
    data = {"figures": n, "problems": records}
    print(render(Report((verdict,), table, (), data, records), output))
    return 1 if bad else 0
