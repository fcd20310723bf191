"""Rows of a choice in words, and the command that runs one."""

import shlex

from tokcast.cli.names import short_name
from tokcast.cli.render import count, rate, size
from tokcast.cli.select import Selection
from tokcast.predictor.select.ranking import ppl_ratio
from tokcast.predictor.select.rows import Row
from tokcast.predictor.select.wishes import Miss
from tokcast.predictor.sources.choose import label_of


def model_of(row: Row) -> str:
    """Return a short name of a row's model."""
    return short_name(row.candidate.spec.name)


def seconds(value: float) -> str:
    """Return a time with two or three digits."""
    if value >= 100:
        return f"{value:,.0f} s"
    return f"{value:.1f} s" if value >= 10 else f"{value:.2f} s"


def device(s: Selection) -> str:
    """Return a host's name, with how many there are."""
    n = f"{s.host.n_devices}x " if s.host.n_devices > 1 else ""
    return f"{n}{s.host.name}"


def loss(row: Row) -> str:
    """Return the published loss in percent of perplexity, blank where nothing was published."""
    ratio = ppl_ratio(row)
    return "" if ratio is None else f"{100 * (ratio - 1):+.1f} %"


def interval(row: Row) -> str:
    """Return the range of the generation speed."""
    return f"{rate(row.decode.low)} - {rate(row.decode.high)}"


def miss(m: Miss) -> str:
    """Return in words what is missed and by how much."""
    if m.wish == "memory" and isinstance(m.found, float) and isinstance(m.limit, float):
        over = size(m.found - m.limit)
        return f"needs {size(m.found)} of {size(m.limit)}: {over} too much"
    if m.wish == "context":
        return f"trained for a context of {count(int(m.found or 0))}, not {count(int(m.limit))}"
    if m.wish == "license":
        return f"{m.words}: {m.found}" if m.found else str(m.words)
    if m.found is None:
        return f"{m.wish} {m.limit}: {m.words}"
    below = "below" if m.wish == "min-decode" else "above"
    found, limit = float(m.found), float(m.limit)
    if m.wish == "quality-floor":
        return f"loses {100 * (found - 1):.1f} % perplexity, {100 * (limit - 1):.1f} % allowed"
    by = abs(100 * (found / limit - 1))
    return f"{found:.3g} {m.words}: {by:.0f} % {below} --{m.wish} {limit:g}"


def run_command(s: Selection, row: Row) -> str:
    """Return the command that downloads and runs a row's model."""
    c, w = row.candidate, s.wishes
    if row.run.runtime == "mlx":
        return f"mlx_lm.server --model {shlex.quote(c.repo or c.path or 'MODEL')}"
    if c.origin == "ollama":
        return f"ollama run {shlex.quote(c.address.removeprefix('ollama:'))}"
    layers = 0 if row.run.backend == "CPU" else 99
    words = [f"llama-server {_weights(s, row)} -ngl {layers} -c {w.context}"]
    settings = {"-ctk": w.type_k.lower(), "-ctv": w.type_v.lower(), "-ub": str(w.n_ubatch)}
    usual = {"-ctk": "f16", "-ctv": "f16", "-ub": "512"}
    words += [f"{flag} {value}" for flag, value in settings.items() if value != usual[flag]]
    return " ".join(words if w.flash_attention else [*words, "-fa off"])


def _weights(s: Selection, row: Row) -> str:
    c = row.candidate
    if c.repo:
        alike = sum((o.repo, o.quant) == (c.repo, c.quant) for o in s.found.candidates)
        file = c.address.removeprefix(f"hf:{c.repo}/")
        if file != c.address and (alike > 1 or not label_of(file)):
            return f"-hf {shlex.quote(c.repo)} -hff {shlex.quote(file)}"
        return f"-hf {shlex.quote(f'{c.repo}:{c.quant}')}"
    if c.path:
        return f"-m {shlex.quote(c.path)}"
    if c.origin == "catalogue":
        return f"-hf OWNER/REPO:{c.quant}"
    return f"--model-url {shlex.quote(c.address)}"
