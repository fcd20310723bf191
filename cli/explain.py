"""`--explain`: the memory and the ledger behind a prediction, as tables."""

from collections.abc import Sequence

from tokcast.cli.fitting import Fit
from tokcast.cli.predict_answer import Forecast
from tokcast.cli.render import Table, size
from tokcast.predictor.prediction import ComponentTime, Prediction

# Components that take less of the time than this are shown as one line.
SMALL_SHARE = 0.005
_RIGHT = frozenset({"MB", "Gflop", "ms", "share"})


def memory_table(fit: Fit) -> Table:
    """Return what the memory holds, and which memory."""
    use = fit.use
    parts = [
        ("weights", use.weights_bytes),
        ("K/V cache", use.kv_bytes),
        ("recurrent state", use.recurrent_bytes),
        ("compute buffers", use.compute_device_bytes + use.compute_host_bytes),
    ]
    if fit.is_unified:
        parts.append(("in all", use.unified_bytes))
    else:
        # A tied table lies in both, so that these can add up to more.
        parts += [("on the card", use.device_bytes), ("in main memory", use.host_bytes)]
    rows = tuple((name, size(n)) for name, n in parts if n)
    return Table(("memory", "size"), rows, frozenset({"size"}))


def ledger_table(forecast: Forecast, title: str) -> Table:
    """Return bytes, operations and time by component, largest first, and the data sheet's limit."""
    p = forecast.prediction
    listed = sorted(p.components, key=lambda c: -c.seconds)
    n_large = sum(c.seconds >= SMALL_SHARE * p.seconds for c in listed)
    # One line saves nothing by standing for another.
    n_large += n_large == len(listed) - 1
    large, small = listed[:n_large], listed[n_large:]
    rows = [_row(f"{_words(c.component)} {c.type}".strip(), [c], p, c.bound) for c in large]
    if small:
        rows.append(_row(f"{len(small)} smaller ones", small, p, ""))
    rows.append(_row("total", listed, p, p.bound))
    limit_s = p.seconds * p.tok_per_s / p.ceiling_tok_per_s
    share = f"{100 * limit_s / p.seconds:.1f} %"
    rows.append(("at the data sheet's peaks", "", "", _ms(limit_s), share, ""))
    return Table((title, "MB", "Gflop", "ms", "share", "bound"), tuple(rows), _RIGHT)


def _row(name: str, parts: Sequence[ComponentTime], p: Prediction, bound: str) -> tuple[str, ...]:
    seconds = sum(c.seconds for c in parts)
    return (
        name,
        f"{sum(c.bytes for c in parts) / 1e6:,.1f}",
        f"{sum(c.flops for c in parts) / 1e9:,.2f}",
        _ms(seconds),
        f"{100 * seconds / p.seconds:.1f} %",
        bound,
    )


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:,.3f}"


def _words(component: str) -> str:
    return component.replace("_", " ")
