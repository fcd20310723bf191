"""A sweep of plans as a picture."""

from pathlib import Path

from tokcast.cli.charts.placement import Step, draw_steps
from tokcast.cli.charts.png import png_of
from tokcast.cli.plan import Planned
from tokcast.cli.plan_report import name_of, title
from tokcast.cli.render import cut
from tokcast.predictor.errors import InputError

# What of a title a drawing has room for.
MOST_CHARACTERS = 72


def draw(p: Planned, path: str) -> None:
    """Write the sweep as a drawing; raises InputError for a file that can't be written."""
    steps = [
        Step(
            plan.n_away or 0,
            name_of(plan),
            plan.decode.tok_per_s,
            plan.decode.low,
            plan.decode.high,
            plan.fits is not False,
        )
        for plan in p.sweep
    ]
    n_all = len(p.sweep[0].placement.layer_devices)
    n_bare = sum(plan.placement.n_gpu_layers == n_all for plan in p.sweep) - 1
    svg = draw_steps(steps, cut(title(p), MOST_CHARACTERS), n_bare, p.min_tok_per_s)
    content = png_of(svg) if path.lower().endswith(".png") else svg.encode()
    try:
        Path(path).write_bytes(content)
    except OSError as error:
        raise InputError(f"--plot {path}: {error.strerror}; expected a file to write") from None
