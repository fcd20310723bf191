"""llama-bench's side of a prediction: the command that checks it, and the table it would print."""

import shlex
from collections.abc import Sequence

from tokcast.cli.placed_report import bench_flags
from tokcast.cli.predict_answer import Answer
from tokcast.cli.predict_words import model_text
from tokcast.cli.render import Table, params, size


def check_command(a: Answer) -> str:
    """Return the command that measures what was predicted."""
    asked = a.asked
    is_file = a.spec.source.endswith(".gguf") and "://" not in a.spec.source
    model = shlex.quote(a.spec.source) if is_file else "MODEL"
    if a.run.runtime == "mlx":
        n_prompt, n_gen = (asked.n_prompts or (0,))[0], (asked.n_gens or (0,))[0]
        return f"mlx_lm.benchmark --model MODEL -p {n_prompt} -g {n_gen}"
    words = [f"llama-bench -m {model} -p {_listed(asked.n_prompts)} -n {_listed(asked.n_gens)}"]
    words.append(f"-d {_listed([f.n_depth for f in a.forecasts])}")
    if asked.n_ubatch != 512:
        words.append(f"-ub {asked.n_ubatch}")
    for flag, kind in (("-ctk", asked.type_k), ("-ctv", asked.type_v)):
        if kind != "F16":
            words.append(f"{flag} {kind.lower()}")
    if not asked.flash_attention:
        words.append("-fa 0")
    if a.placement is not None and a.placement.flags:
        words.append(bench_flags(a.placement))
    return " ".join(words)


def _listed(numbers: Sequence[int]) -> str:
    return ",".join(map(str, dict.fromkeys(numbers))) or "0"


def bench_table(answers: Sequence[Answer]) -> Table:
    """Return predictions as llama-bench's Markdown table."""
    columns = ("model", "size", "params", "backend", "ngl", "test", "t/s")
    rows = tuple(
        (
            model_text(a),
            size(a.spec.n_bytes),
            params(a.spec.n_params),
            a.run.backend,
            str(a.placement.n_gpu_layers) if a.placement else "99",
            f.label,
            f"{f.prediction.tok_per_s:.2f} ± {(f.prediction.high - f.prediction.low) / 2:.2f}",
        )
        for a in answers
        for f in a.forecasts
    )
    return Table(columns, rows, frozenset(columns[1:]))
