"""A choice as a picture: speed over published loss, the size of a mark being the memory."""

from pathlib import Path

from tokcast.cli.select import Selection
from tokcast.cli.select_report import device, model_of
from tokcast.predictor.errors import InputError
from tokcast.predictor.select.ranking import front, ppl_ratio

SUFFIXES = (".svg", ".png", ".pdf")
MOST_NAMED = 12
SMALLEST_LOSS = 0.01  # percent, where the axis of losses ends


def draw(s: Selection, path: str) -> None:
    """Write the picture; raises InputError where nothing can be drawn or the file not written."""
    if not path.lower().endswith(SUFFIXES):
        raise InputError(f"--plot {path}: expected a file that ends with {', '.join(SUFFIXES)}")
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError(
            "--plot: matplotlib is not installed; pip install 'tokcast[plots]'"
        ) from None
    places = front(s.rows)
    if not places:
        raise InputError("--plot: no candidate that meets the wishes has a published loss to show")
    # Text that a browser can show and search, and the same file for the same answer.
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "tokcast"})
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    known = [(i, row, r) for i, row in enumerate(s.rows) if (r := ppl_ratio(row)) is not None]
    for is_front, colour, label in (
        (False, "#b8bec6", "candidates that meet the wishes"),
        (True, "#c8553d", "nothing is better in every respect"),
    ):
        shown = [(row, r) for i, row, r in known if row.is_feasible and (i in places) == is_front]
        axes.scatter(
            [max(100 * (r - 1), SMALLEST_LOSS) for _, r in shown],
            [row.decode.tok_per_s for row, _ in shown],
            s=[4 + 3 * row.need_bytes / 1024**3 for row, _ in shown],
            c=colour,
            label=label,
            linewidths=0,
        )
    named = [(row, r) for i, row, r in known if i in places][:MOST_NAMED]
    for row, r in named:
        axes.annotate(
            f"{model_of(row)} {row.candidate.quant}".replace("$", r"\$"),
            (max(100 * (r - 1), SMALLEST_LOSS), row.decode.tok_per_s),
            fontsize=6,
            xytext=(3, 3),
            textcoords="offset points",
        )
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="published loss of the quantization, % perplexity",
        ylabel="tokens a second, generating",
        title=f"{device(s)}; the larger the mark, the more memory",
    )
    axes.legend(loc="lower right", fontsize=8)
    try:
        figure.savefig(Path(path), metadata={"Date": None} if path.endswith(".svg") else None)
    except OSError as error:
        raise InputError(f"--plot {path}: {error.strerror}; expected a file to write") from None
