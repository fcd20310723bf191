"""Where `tokcast triage` finds what was measured: a kept run, a file of figures, or a number."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tokcast.cli.options import detected
from tokcast.cli.running import run_with
from tokcast.cli.triage_cases import Case, Request, host_for, label_of, of_number, spec_of
from tokcast.measurements.record import RunRecord, Series
from tokcast.measurements.schema import Measurement
from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host
from tokcast.predictor.ledger import Workload
from tokcast.predictor.roofline import tokens_of
from tokcast.predictor.spec import ModelSpec


def cases(request: Request) -> tuple[Case, ...]:
    """Return what was measured; raises InputError for a target that is none of the three."""
    target = request.target
    if Path(target).is_file():
        return tuple(_of_file(request))
    if request.model is not None:
        return (of_number(request),)
    return tuple(_of_run(request))


def _of_run(request: Request) -> Iterator[Case]:
    from tokcast.measurements.headers import unpack
    from tokcast.measurements.store import open_store
    from tokcast.predictor.model import model_spec

    found = [r for r in open_store().runs() if r.id.startswith(request.target)]
    if len(found) != 1:
        what = "no run" if not found else f"{len(found)} runs"
        raise InputError(
            f"{request.target}: {what} of that id (tokcast measure list), and no file;"
            " a number of tokens/s needs --model"
        )
    (record,) = found
    spec = model_spec(unpack(record.model.header))
    is_here = request.host is None and request.bandwidth is None and _is_here(record)
    host, notes = detected() if is_here else host_for(request, record.host)
    for series in record.series:
        yield replace(_of_series(record, series, spec, host), notes=notes, is_here=is_here)


def _is_here(record: RunRecord) -> bool:
    """Return whether a run was measured on a chip such as this machine's."""
    try:
        return detected()[0].name == record.host
    except InputError:
        return False


def _of_series(record: RunRecord, series: Series, spec: ModelSpec, host: Host) -> Case:
    task, setup = series.test, record.setup
    is_decode = task.phase == "decode"
    load = Workload(
        phase=task.phase,
        n_prompt=1 if is_decode else task.n,
        n_depth=task.n_depth + (task.n // 2 if is_decode else 0),
        n_ubatch=setup.n_ubatch,
        type_k=setup.type_k,
        type_v=setup.type_v,
        flash_attention=setup.flash_attention != "off",
    )
    return Case(
        label=task.label,
        spec=spec,
        host=host,
        run=replace(
            run_with(setup.runtime, setup.backend, setup.flash_attention, is_here=False),
            n_threads=setup.n_threads,
        ),
        workload=load,
        n_depth=task.n_depth,
        seconds=tokens_of(load) / series.tok_per_s,
    )


def _of_file(request: Request) -> Iterator[Case]:
    from tokcast.measurements.importers import read_file

    spec = None if request.model is None else spec_of(request)
    read = read_file(Path(request.target))
    made = [_of_row(request, m, spec) for m in read.rows]
    unknown = tuple(text for text in made if isinstance(text, str))
    if len(unknown) == len(made):
        raise InputError(
            f"{request.target}: none of its models is known here with its lengths; name one with"
            " --model"
        )
    for case in made:
        if isinstance(case, Case):
            yield replace(case, notes=(*case.notes, *unknown))


def _of_row(request: Request, m: Measurement, spec: ModelSpec | None) -> Case | str:
    """Return a row's case, or what of it is not known."""
    from tokcast.fits.observations import facts_of, run_of
    from tokcast.measurements.cleaning import check

    facts = facts_of(m)
    spec = spec or facts.spec
    if spec is None or len(facts.workloads) != 1:
        what = "its model is not in the catalogue" if spec is None else "its lengths are not known"
        return f"{m.model or m.model_id} {m.quant}: left out, {what}"
    host, notes = host_for(request, m.chip)
    rule = check(replace(m, chip=host.name), facts_of(replace(m, chip=host.name)))
    # That it is above the roof is what the triage itself says.
    doubts = (f"{rule.name}: {rule.reason}",) if rule and rule.name != "above-roof" else ()
    (load,) = facts.workloads
    n = int((m.n_gen if load.phase == "decode" else m.n_prompt) or 1)
    depth = int(m.n_depth or 0)
    return Case(
        label=label_of(load, n, depth),
        spec=spec,
        host=host,
        run=run_of(m),
        workload=load,
        n_depth=depth,
        seconds=tokens_of(load) / m.tok_s,
        notes=(*notes, *doubts),
    )
