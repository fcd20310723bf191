"""From a scene to the inputs of its worksheet."""

from collections.abc import Iterator
from typing import Literal

from tokcast.cli.scene import Scene
from tokcast.cli.worksheet import OWNERS, Input
from tokcast.predictor.errors import InputError
from tokcast.predictor.ledger import Phase, Work, ledger
from tokcast.predictor.roofline import Share, cap_of, scale, shape_of, shares_of, tokens_of
from tokcast.predictor.terms import terms
from tokcast.predictor.traits import traits_of

_OWNER_OF = {
    "kv_read": "kv_history",
    "attention_op": "kv_history",
    "recurrent_state": "kv_history",
    "kv_write": "kv_writes",
    "activations": "activations",
    "scores": "temporaries",
}
_PEAKS = {
    "int8_ops_per_s": "INT8",
    "matrix_fp16_flops_per_s": "FP16 matrix",
    "matrix_fp32acc_flops_per_s": "FP16 matrix, FP32 sums",
    "fp16_flops_per_s": "FP16 vector",
    "fp32_flops_per_s": "FP32 vector",
}
_COMPUTE = frozenset({"compute", "tile", "attention"})
Sums = dict[str, list[float]]


def is_capped(scene: Scene) -> bool:
    """Return whether the host's roof is sure enough to cut a prediction to."""
    return cap_of(scene.host, 1.0) == 1.0


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
        Input("peak_flops_per_s", f"peak, {_PEAKS[name]}", "FLOP/s", peak, *given(name)),
        Input(
            "vector_flops_per_s", "FP32 rate multiples count by", "FLOP/s", vector, origin, source
        ),
    )


def _phase_inputs(scene: Scene, phase: Phase) -> Iterator[Input]:
    q = scene.question(phase)
    works = ledger(scene.spec, q.workload)
    found = terms(works, scene.host, q.run, phase)
    effects, shape = scene.coefficients.effects, shape_of(scene.spec, q.workload)
    scales = [scale(effects, t, q, shape) for t in found]
    fitted = shares_of(found, scales, phase)
    moved, spent = _work_sums(works), _time_sums(fitted)
    count, fit = scene.spec.source, f"coefficients {scene.coefficients.digest}"
    n_tokens = float(tokens_of(q.workload))
    yield Input(f"{phase}.n_tokens", "tokens", "token", n_tokens, "assumed", "the setting")
    vector = traits_of(scene.host).fp32_flops_per_s
    for owner in OWNERS:
        key, title = f"{phase}.{owner.name}", owner.title
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
    overhead = sum(share.seconds for share in fitted if share.term.kind == "launch")
    if overhead:
        yield Input(f"{phase}.overhead_s", "starting kernels", "s", overhead, "fitted", fit)


def _work_sums(works: tuple[Work, ...]) -> Sums:
    sums: Sums = {}
    for w in works:
        row = sums.setdefault(_OWNER_OF.get(w.component, "weights"), [0.0, 0.0])
        row[0] += w.bytes
        row[1] += w.flops
    return sums


def _time_sums(fitted: list[Share]) -> Sums:
    sums: Sums = {}
    for share in fitted:
        if share.term.kind != "launch":
            row = sums.setdefault(_OWNER_OF.get(share.term.component, "weights"), [0.0, 0.0])
            row[share.term.kind in _COMPUTE] += share.seconds
    return sums
