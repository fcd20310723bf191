"""A prediction told in sentences."""

from tokcast.cli.predict_answer import Answer, Forecast
from tokcast.cli.render import count, rate, size
from tokcast.cli.scene import Scene, phase_point, roofline_of, side_of
from tokcast.predictor.host import Host
from tokcast.predictor.prediction import Prediction

_EVIDENCE = {
    "same host": "Measurements of this very chip stand behind it",
    "same chip family": "No measurement of this chip stands behind it, but some of its family",
    "spec sheet only": "Nothing of its family was measured: it rests on the data sheet alone",
}
_CACHE = frozenset({"kv_read", "attention_op", "scores"})


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _sum(p: Prediction, names: frozenset[str]) -> tuple[float, float]:
    """Return bytes and seconds of the named components."""
    found = [c for c in p.components if c.component in names]
    return sum(c.bytes for c in found), sum(c.seconds for c in found)


def decode_words(p: Prediction, host: Host, n_depth: int) -> str:
    """Return why generation is as fast as it is."""
    n_bytes = sum(c.bytes for c in p.components)
    cache_bytes, cache_s = _sum(p, _CACHE)
    limit_s = n_bytes / host.bytes_per_s
    text = (
        f"One generated token moves {size(n_bytes)}. At the {host.bytes_per_s / 1e9:,.4g} GB/s of"
        f" the data sheet that takes {_ms(limit_s)}; predicted are {_ms(p.seconds)}, so"
        f" {100 * limit_s / p.seconds:.0f} % of that bandwidth is put to use."
    )
    if n_depth and cache_bytes:
        share = 100 * cache_s / p.seconds
        text += (
            f" The K/V cache of {count(n_depth)} tokens is {size(cache_bytes)} of it"
            f" and attention takes {share:.0f} % of the time."
        )
    launch_s = sum(c.seconds for c in p.components if c.component == "launches")
    if launch_s > 0.1 * p.seconds:
        text += f" Starting kernels takes {100 * launch_s / p.seconds:.0f} % of the time."
    return text


def prefill_words(p: Prediction, n_ubatch: int) -> str:
    """Return why reading is as fast as it is."""
    flops = sum(c.flops for c in p.components)
    batches = -(-p.n_prompt // n_ubatch)
    return (
        f"Reading {p.n_prompt:,} tokens takes {_ms(p.seconds)}: {flops / 1e12:.3g} TFLOP at"
        f" {flops / p.seconds / 1e12:.3g} TFLOP/s, in"
        + (" one go." if batches == 1 else f" {batches} goes that each read the weights once.")
    )


def side_words(scene: Scene, predictions: list[Prediction]) -> str:
    """Return on which side of the ridge the phases lie, or that it is too close to call."""
    roof = roofline_of(scene, predictions)
    if roof.ridge is None:
        return "No rate of arithmetic is known for this host, so its roof has no ridge."
    found = []
    for p in predictions:
        side = side_of(phase_point(p, scene.setting), roof)
        where = {
            "memory": "left of the ridge: memory bounds it",
            "compute": "right of it: arithmetic bounds it",
            "": "so near the ridge that no side is named",
        }[side]
        found.append(f"{p.phase} lies {where}")
    return (
        f"By the data sheet alone the ridge is at {roof.ridge:,.3g} operations a byte;"
        f" {', '.join(found)}."
    )


def evidence_words(a: Answer) -> str:
    """Return how far to trust it."""
    first = a.forecasts[0].prediction
    n = max(f.prediction.n_observations for f in a.forecasts)
    if a.calibration:
        return f"Calibrated on this machine: {a.calibration}."
    return (
        f"{_EVIDENCE[a.evidence]}; the range held {100 * first.level:.0f} % of measurements that"
        f" the fit had not seen. {n:,} published {a.run.backend} configurations were fitted."
    )


def slowdown_words(shallow: float, deep: float, depth: int) -> str:
    """Return what a long context costs."""
    return (
        f"At {count(depth)} tokens of context it generates {rate(deep)} tok/s,"
        f" {100 * deep / shallow:.0f} % of the {rate(shallow)} at an empty one."
    )


def explain(
    a: Answer, scene: Scene, forecasts: tuple[Forecast, ...], ends: tuple[float, float, int]
) -> list[str]:
    """Return the whole explanation, a paragraph each."""
    predictions = [f.prediction for f in forecasts]
    found = []
    for p in predictions:
        if p.phase == "decode":
            found.append(decode_words(p, scene.host, scene.setting.n_depth))
        else:
            found.append(prefill_words(p, scene.setting.n_ubatch))
    found += [slowdown_words(*ends), side_words(scene, predictions), f"{a.fit}."]
    return [*found, evidence_words(a)]
