"""Plots of an evaluation as SVG, where matplotlib is installed."""

import importlib.util
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tokcast.fits.evaluate import PhaseEvaluation

_SIZE = (6.4, 4.4)


def _scatter(axes: Any, phase: str, p: PhaseEvaluation) -> None:
    measured, predicted = p.points[np.isfinite(p.points).all(axis=1)].T
    ends = [min(measured.min(), predicted.min()), max(measured.max(), predicted.max())]
    axes.loglog(ends, ends, color="0.3", linewidth=0.8)
    # As pixels: thousands of points as paths make a page slow.
    axes.plot(measured, predicted, ".", markersize=2.5, alpha=0.4, rasterized=True)
    axes.set(
        xlabel="measured, tokens/s",
        ylabel="predicted with the chip left out, tokens/s",
        title=f"{phase}: {measured.size:,} configurations",
    )


def _curve(axes: Any, phase: str, p: PhaseEvaluation) -> None:
    for host, marker in (("chip", "o"), ("machine", "s")):
        shots = [s for s in p.shots if s.host == host]
        k = [s.k for s in shots]
        axes.plot(k, [s.host_mean_mape for s in shots], marker + "-", label=f"{host}: mean")
        axes.plot(k, [s.median_ape for s in shots], marker + ":", label=f"{host}: median")
        axes.set_xticks(k)
    axes.set(
        xlabel="rows of the chip or machine given back",
        ylabel="error, %",
        title=f"{phase}: what a few measurements bring",
        ylim=(0, None),
    )
    axes.legend(frameon=False)


def _ladder(axes: Any, phase: str, p: PhaseEvaluation) -> None:
    factors: dict[str, list[float]] = defaultdict(list)
    for rung in p.ladder:
        factors[rung.file_type].append(rung.by_bytes)
    order = sorted(factors, key=lambda name: -float(np.median(factors[name])))
    place = {name: i for i, name in enumerate(order)}
    stacks: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for rung in p.ladder:
        stacks[rung.stack].append((place[rung.file_type], rung.factor))
    for marker, (stack, found) in zip("osv^D<>pX*", stacks.items(), strict=False):
        x, y = zip(*sorted(found), strict=True)
        axes.plot(x, y, marker + "-", markersize=4, linewidth=0.8, label=stack)
    axes.plot(
        range(len(order)),
        [np.median(factors[name]) for name in order],
        color="0.3",
        linewidth=0.8,
        linestyle="--",
        label="by bytes alone",
    )
    axes.set(ylabel="speed, Q4_K_M = 1", title=f"{phase}: file types, smallest first")
    axes.set_xticks(range(len(order)), order, rotation=60, ha="right", fontsize=7)
    axes.legend(frameon=False, fontsize=7)


PLOTS = {"scatter": _scatter, "curve": _curve, "ladder": _ladder}


def draw(folder: Path, phases: Mapping[str, PhaseEvaluation]) -> list[str] | None:
    """Write the plots and return their names; None where matplotlib is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        return None
    import matplotlib as mpl
    from matplotlib.figure import Figure

    names = []
    # Fixed names of elements and no date: the same figures give the same file.
    with mpl.rc_context({"svg.hashsalt": "tokcast", "svg.fonttype": "none"}):
        for phase, p in phases.items():
            for kind, plot in PLOTS.items():
                figure = Figure(figsize=_SIZE, layout="constrained", dpi=120)
                plot(figure.subplots(), phase, p)
                names.append(f"accuracy-{kind}-{phase}.svg")
                figure.savefig(folder / names[-1], metadata={"Date": None})
    return names
