"""Output of `mlx_lm.benchmark` and of LocalScore."""

import re
from collections.abc import Iterator, Mapping
from statistics import mean, stdev
from typing import Any

from tokcast.measurements.importers.bench_table import cells
from tokcast.measurements.importers.rows import Imported, Skipped, number, row
from tokcast.measurements.schema import Measurement
from tokcast.predictor.errors import InputError

_TIMING = re.compile(
    r"prompt_tokens=(?P<p>\d+), generation_tokens=(?P<g>\d+), batch_size=(?P<b>\d+)"
)
_TRIAL = re.compile(r"Trial\s+\d+:.*?prompt_tps=(?P<pp>[\d.]+), generation_tps=(?P<tg>[\d.]+)")
_MLX_MODEL = re.compile(r"--model[ =](?P<model>\S+)")
_MIX = re.compile(r"pp(?P<p>\d+)\+tg(?P<g>\d+)")
_TITLE = re.compile(r"^(?P<model>.+?) - (?P<quant>[A-Z0-9_]+(?: - \w+)?)$")
_DEVICE = re.compile(r"^(?P<device>.+?) - (?P<gib>[\d.]+) GiB$")


def _spread(values: list[float]) -> float | None:
    return stdev(values) if len(values) > 1 else None


def _mlx_rows(
    shape: Mapping[str, int], trials: list[tuple[float, float]], model: str, name: str
) -> Iterator[Measurement]:
    n_prompt, n_gen = shape["p"], shape["g"]
    common = {"source": name, "runtime": "mlx-lm", "backend_raw": "MLX", "model": model}
    prompt = [t[0] for t in trials]
    yield row(
        {
            **common,
            "phase": "prefill",
            "n_prompt": float(n_prompt),
            "n_gen": 0.0,
            "n_depth": 0.0,
            "tok_s": mean(prompt),
            "tok_s_std": _spread(prompt),
        }
    )
    if n_gen < 2:
        return
    # Its clock starts at the first token, and all n are counted over n - 1 intervals.
    generated = [t[1] * (n_gen - 1) / n_gen for t in trials]
    yield row(
        {
            **common,
            "phase": "decode",
            "n_prompt": 0.0,
            "n_gen": float(n_gen),
            "n_depth": float(n_prompt),
            "tok_s": mean(generated),
            "tok_s_std": _spread(generated),
            "flags": {"tps-corrected"},
        }
    )


def read_mlx(text: str, name: str) -> Imported:
    """Return the rows of `mlx_lm.benchmark`, generation corrected for its count of intervals."""
    rows: list[Measurement] = []
    skipped: list[Skipped] = []
    found = _MLX_MODEL.search(text)
    model = found["model"] if found else ""
    parts = _TIMING.split(text)
    for i in range(1, len(parts), 4):
        shape = {"p": int(parts[i]), "g": int(parts[i + 1])}
        if parts[i + 2] != "1":
            skipped.append(Skipped(f"timing {i // 4 + 1}", f"batch_size={parts[i + 2]}, not 1"))
            continue
        trials = [(float(t["pp"]), float(t["tg"])) for t in _TRIAL.finditer(parts[i + 3])]
        if trials:
            rows.extend(_mlx_rows(shape, trials, model, name))
    return Imported("mlx_lm.benchmark", tuple(rows), tuple(skipped))


def _localscore(values: Mapping[str, Any], common: Mapping[str, Any]) -> Iterator[Measurement]:
    n_prompt, n_gen = float(values["n_prompt"]), float(values["n_gen"])
    prompt, generated = number(values.get("prompt_tps")), number(values.get("gen_tps"))
    watts = number(values.get("power_watts")) or None
    power = {"power_w": watts, "power_kind": "localscore" if watts else ""}
    lengths = (
        ("prefill", n_prompt, 0.0, 0.0, prompt, values.get("prompt_tps_stddev")),
        # It generates on top of the prompt it has just read.
        ("decode", 0.0, n_gen, n_prompt, generated, values.get("gen_tps_stddev")),
    )
    for phase, p, g, depth, rate, deviation in lengths:
        if rate:
            yield row(
                {
                    **common,
                    **power,
                    "phase": phase,
                    "n_prompt": p,
                    "n_gen": g,
                    "n_depth": depth,
                    "tok_s": rate,
                    "tok_s_std": number(deviation),
                }
            )


def read_localscore(data: Mapping[str, Any], name: str) -> Imported:
    """Return the rows of LocalScore's JSON: two for each of its prompt and answer mixes."""
    accelerator = data.get("accelerator_info") or {}
    runtime = data.get("runtime_info") or {}
    is_cpu = str(accelerator.get("type", "")).upper() == "CPU"
    rows: list[Measurement] = []
    skipped: list[Skipped] = []
    for n, r in enumerate(data.get("results") or (), 1):
        params = number(r.get("model_n_params"))
        common = {
            "source": name,
            "runtime": "llamafile",
            "build": f"{runtime.get('version', '')} {runtime.get('commit', '')}".strip(),
            "device": str(accelerator.get("name", "")),
            "memory_gb": number(accelerator.get("memory_gb")),
            "backend_raw": "CPU" if is_cpu else str(r.get("backends") or "CUDA"),
            "model": str(r.get("model_type") or r.get("model_name") or ""),
            "model_file": str(r.get("model_filename") or ""),
            "params_b": None if params is None else params / 1e9,
            "date": str(r.get("test_time") or "")[:19].replace("T", " "),
        }
        try:
            rows.extend(_localscore(r, common))
        except (InputError, KeyError, TypeError, ValueError) as error:
            skipped.append(Skipped(f"result {n}", str(error)))
    return Imported("LocalScore JSON", tuple(rows), tuple(skipped))


def read_localscore_table(text: str, name: str) -> Imported:
    """Return the rows of LocalScore's table: two for each of its prompt and answer mixes."""
    rows: list[Measurement] = []
    common: dict[str, Any] = {"source": name, "runtime": "llamafile"}
    for line in text.splitlines():
        parts = cells(line) if "|" in line else []
        if len(parts) == 1:
            device, title = _DEVICE.match(parts[0]), _TITLE.match(parts[0])
            if device:
                common |= {"device": device["device"], "memory_gb": float(device["gib"])}
            elif title:
                common |= {"model": f"{title['model']} {title['quant']}"}
        mix = _MIX.fullmatch(parts[0].replace(" ", "")) if len(parts) > 5 else None
        if mix is None:
            continue
        values = {"n_prompt": mix["p"], "n_gen": mix["g"]}
        values |= {"prompt_tps": parts[-3], "gen_tps": parts[-2]}
        rows.extend(_localscore(values, common))
    return Imported("LocalScore table", tuple(rows), ())
