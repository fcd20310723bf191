"""A recommendation of formats as data: SI units, nothing rounded."""

from collections.abc import Mapping
from typing import Any

from tokcast.cli.precision import Recommendation, model_name
from tokcast.cli.recommend import Option as FileOption
from tokcast.predictor.precision.choose import RULES, Option
from tokcast.predictor.precision.cost import Row
from tokcast.predictor.select.types import RULE


def record(r: Recommendation, o: Option) -> dict[str, Any]:
    """Return a plan as flat fields."""
    k = o.kept
    return {
        "plan": o.plan.name,
        "host": r.host.name,
        "phase": r.step.phase,
        "n_context": r.step.n_context,
        "seconds": o.cost.seconds,
        "tok_per_s_at_most": o.cost.n_tokens / o.cost.seconds,
        "speedup": r.baseline.cost.seconds / o.cost.seconds,
        "weights_bytes": o.cost.weights_bytes,
        "kv_bytes": o.cost.kv_bytes,
        "need_bytes": o.cost.need_bytes,
        "kv_format": o.plan.kv.name,
        "activations": o.plan.activations,
        "mmlu_kept": None if k is None else k.share,
        "mmlu_kept_of": None if k is None else k.format,
        "mmlu_kept_n": None if k is None else k.n_models,
        "misses": o.misses or None,
    }


def _operator(row: Row) -> dict[str, Any]:
    return {
        "operator": row.operator,
        "format": row.format,
        "arithmetic": row.arithmetic,
        "bytes": row.n_bytes,
        "flops": row.flops,
        "seconds": row.time.seconds,
        "bound": row.bound,
    }


def data_of(r: Recommendation, file_option: FileOption | None) -> Mapping[str, Any]:
    """Return a recommendation as JSON: every plan with its operators, and the file type."""
    return {
        "model": model_name(r),
        "host": {
            "name": r.host.name,
            "bytes_per_s": r.rates.bytes_per_s,
            "flops_per_s": dict(r.rates.flops_per_s),
        },
        "objective": r.objective,
        "rule": RULES[r.objective],
        "pick": r.options[0].plan.name if r.has_pick else None,
        "shown": r.shown.plan.name,
        "plans": [
            {
                **record(r, o),
                "operators": [_operator(row) for row in o.cost.rows],
                "fused": list(o.cost.fused),
                "sources": [] if o.kept is None else list(o.kept.sources),
            }
            for o in r.options
        ],
        "file_type": None
        if file_option is None
        else {
            "file_type": file_option.file_type,
            "tok_per_s": file_option.decode.tok_per_s,
            "low": file_option.decode.low,
            "high": file_option.decode.high,
            "rule": RULE,
        },
        "warnings": list(r.notes),
    }
