"""From a scene to the inputs of its worksheet."""

from collections.abc import Iterator
from typing import Literal

from tokcast.cli.scene import Scene
from tokcast.cli.worksheet import OWNERS, Input
from tokcast.fits.released import released
from tokcast.predictor.errors import InputError
from tokcast.predictor.ledger import Phase, Work, ledger
from tokcast.predictor.roofline import scale, shape_of, tokens_of
from tokcast.predictor.terms import Term, terms
from tokcast.predictor.traits import traits_of

_OWNER_OF = {
    "kv_read": "kv_history",
    "attention_op": "kv_history",
    "recurrent_state": "kv_history",
    "kv_write": "kv_writes",
    "activations": "activations",
    "scores": "temporaries",
}
_PEAKS = (
    "int8_ops_per_s",
    "matrix_fp16_flops_per_s",
    "matrix_fp32acc_flops_per_s",
    "fp16_flops_per_s",
    "fp32_flops_per_s",
)
_COMPUTE = frozenset({"compute", "tile", "attention"})
_TITLES = {owner.name: owner.title.lower() for owner in OWNERS}
Sums = dict[str, list[float]]


def inputs_of(scene: Scene) -> tuple[Input, ...]:
    """Return a worksheet's inputs; worked out they give the prediction itself.

    Raises InputError for a host of which no rate of arithmetic is known.
    """
    host = _host_inputs(scene)
    return (*host, *_phase_inputs(scene, "decode"), *_phase_inputs(scene, "prefill"))


def _host_inputs(scene: Scene) -> tuple[Input, ...]:
    host = scene.host
    known = [(rate, name) for name in _PEAKS if (rate := getattr(host, name))]
    if not known:
        raise InputError(
            f"{host.name}: no rate of arithmetic is known, so there is no roof; expected"
            " flops_per_s with it"
        )
    peak, name = max(known)
    vector = traits_of(host).fp32_flops_per_s

    def given(field: str) -> tuple[Literal["published", "assumed"], str]:
        source = host.source.get(field, "")
        is_given = source in ("", "given by the user")
        return ("assumed" if is_given else "published", source or "not stated")

    origin, source = given("fp32_flops_per_s")
    return (
        Input("bytes_per_s", "memory bandwidth", "B/s", host.bytes_per_s, *given("bytes_per_s")),
        Input("peak_flops_per_s", f"peak, {_words(name)}", "FLOP/s", peak, *given(name)),
        Input(
            "vector_flops_per_s", "FP32 rate multiples count by", "FLOP/s", vector, origin, source
        ),
    )


def _words(field: str) -> str:
    return field.removesuffix("_flops_per_s").removesuffix("_ops_per_s").replace("_", " ")


def _phase_inputs(scene: Scene, phase: Phase) -> Iterator[Input]:
    q = scene.question(phase)
    works = ledger(scene.spec, q.workload)
    found = terms(works, scene.host, phase)
    effects, shape = released().effects, shape_of(scene.spec, q.workload)
    fitted = [(t, t.seconds * scale(effects, t, q, shape)) for t in found]
    moved, spent = _work_sums(works), _time_sums(fitted)
    count, fit = scene.spec.source, f"coefficients {released().digest}"
    n_tokens = float(tokens_of(q.workload))
    yield Input(f"{phase}.n_tokens", "tokens", "token", n_tokens, "assumed", "the setting")
    vector = traits_of(scene.host).fp32_flops_per_s
    for owner in OWNERS:
        key, title = f"{phase}.{owner.name}", _TITLES[owner.name]
        n_bytes, flops = moved.get(owner.name, [0.0, 0.0])
        memory_s, compute_s = spent.get(owner.name, [0.0, 0.0])
        if n_bytes:
            multiple = memory_s * scene.host.bytes_per_s / n_bytes
            yield Input(f"{key}.bytes", f"{title}, bytes", "B", n_bytes, "counted", count)
            yield Input(
                f"{key}.memory_multiple", f"{title}, time a byte", "x peak", multiple, "fitted", fit
            )
        if flops:
            yield Input(f"{key}.flops", f"{title}, operations", "FLOP", flops, "counted", count)
        if flops and compute_s:
            multiple = compute_s * vector / flops
            yield Input(
                f"{key}.compute_multiple",
                f"{title}, time an operation",
                "x FP32 peak",
                multiple,
                "fitted",
                fit,
            )
    overhead = sum(seconds for t, seconds in fitted if t.kind == "launch")
    if overhead:
        yield Input(f"{phase}.overhead_s", "starting kernels", "s", overhead, "fitted", fit)


def _work_sums(works: tuple[Work, ...]) -> Sums:
    sums: Sums = {}
    for w in works:
        row = sums.setdefault(_OWNER_OF.get(w.component, "weights"), [0.0, 0.0])
        row[0] += w.bytes
        row[1] += w.flops
    return sums


def _time_sums(fitted: list[tuple[Term, float]]) -> Sums:
    sums: Sums = {}
    for term, seconds in fitted:
        if term.kind != "launch":
            row = sums.setdefault(_OWNER_OF.get(term.component, "weights"), [0.0, 0.0])
            row[term.kind in _COMPUTE] += seconds
    return sums
