"""What was published about how much a quantization loses: figures, never estimates.

`data/quality.json` holds perplexity ratios to 16 bits, mean KL divergences and same-top-token
shares, as their sources print them; `docs/quality.md` says what was taken and what may be
compared. A figure is of the model itself where one was published, else the median over models
of its size band; where nothing was published there is none.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Literal

Metric = Literal["ppl_ratio", "kld_mean", "same_top_pct"]
METRICS: tuple[Metric, ...] = ("ppl_ratio", "kld_mean", "same_top_pct")
# Upper ends of the size bands, billions of parameters in all.
BANDS = ((3.0, "<3B"), (6.0, "3-6B"), (16.0, "6-16B"), (50.0, "16-50B"), (float("inf"), ">50B"))
SAME_CACHE = "same file, 16-bit cache"

_DATA = Path(__file__).parents[1] / "data" / "quality.json"


@dataclass(frozen=True, slots=True)
class Published:
    """One published value; `reference` is what the file was compared with."""

    source: int
    model: str
    model_id: str
    params_b: float
    file_type: str
    imatrix: str
    kv_type: str
    metric: Metric
    value: float
    stderr: float | None
    reference: str
    text: str


@dataclass(frozen=True, slots=True)
class Figure:
    """The median over `n` models, their spread, and where the values come from.

    `of` names the model, or the size band the models belong to. `imatrix` says which class of
    files it is of: made with an importance matrix, or without one or not said.
    """

    metric: Metric
    value: float
    low: float
    high: float
    n: int
    of: str
    imatrix: bool
    reference: str
    text: str
    sources: tuple[str, ...]
    stderr: float | None = None


@dataclass(frozen=True, slots=True)
class Loss:
    """The figures of one quantization of one model, as far as there are any."""

    ppl_ratio: Figure | None = None
    kld_mean: Figure | None = None
    same_top_pct: Figure | None = None

    @property
    def figures(self) -> tuple[Figure, ...]:
        """Return the figures there are."""
        return tuple(f for f in (self.ppl_ratio, self.kld_mean, self.same_top_pct) if f)


@cache
def _data() -> tuple[tuple[str, ...], dict[str, tuple[Published, ...]]]:
    """Return the sources, and the values by file type."""
    plain = json.loads(_DATA.read_bytes())
    by_type: dict[str, list[Published]] = {}
    for row in plain["rows"]:
        by_type.setdefault(row[4], []).append(Published(*row))
    sources = tuple(f"{name} ({licence})" for name, licence in plain["sources"])
    return sources, {name: tuple(rows) for name, rows in by_type.items()}


def published() -> Iterator[Published]:
    """Yield every published value."""
    for rows in _data()[1].values():
        yield from rows


def band_of(n_params: float) -> str:
    """Return the size band of a model."""
    return next(name for most, name in BANDS if n_params / 1e9 < most)


def loss_of(model_id: str, n_params: float, file_type: str, imatrix: bool | None) -> Loss:
    """Return what was published for a file type of a model.

    `model_id` is a catalogue name or empty; `imatrix` None where it is not known how the file
    was made: then the class of files that more models speak for, without one where both are even.
    """
    own = model_id if (model_id, file_type) in _own() else ""
    return _loss(own, band_of(n_params), file_type, imatrix)


@cache
def _own() -> frozenset[tuple[str, str]]:
    """Return the (model, file type) pairs that figures of their own were published for."""
    return frozenset((r.model_id, r.file_type) for rows in _data()[1].values() for r in rows)


@cache
def _loss(model_id: str, band: str, file_type: str, imatrix: bool | None) -> Loss:
    rows = [r for r in _data()[1].get(file_type, ()) if not r.kv_type]
    classes = (False, True) if imatrix is None else (imatrix,)
    own = [r for r in rows if model_id and r.model_id == model_id]
    alike = [r for r in rows if band_of(r.params_b * 1e9) == band]
    return Loss(*(_first(metric, classes, own, alike, band) for metric in METRICS))


def _first(
    metric: Metric,
    classes: Sequence[bool],
    own: Sequence[Published],
    alike: Sequence[Published],
    band: str,
) -> Figure | None:
    for rows, of in ((own, ""), (alike, f"{band} models")):
        # Where it is not known how the file was made: the class that more models speak for.
        figures = [
            _figure(found, is_made_with, of)
            for is_made_with in classes
            if (found := _class(rows, metric, is_made_with))
        ]
        if figures:
            return max(figures, key=lambda f: f.n)
    return None


def _class(rows: Iterable[Published], metric: Metric, imatrix: bool) -> list[Published]:
    return [r for r in rows if r.metric == metric and (r.imatrix == "yes") == imatrix]


def _figure(rows: Iterable[Published], imatrix: bool, of: str) -> Figure:
    """Return the median over models of each model's median, on the most used text."""
    listed = _comparable(tuple(rows))
    by_model: dict[str, list[Published]] = {}
    for row in listed:
        by_model.setdefault(row.model, []).append(row)
    values = [median(r.value for r in group) for group in by_model.values()]
    first = listed[0]
    sources = _data()[0]
    return Figure(
        metric=first.metric,
        value=median(values),
        low=min(r.value for r in listed) if len(values) == 1 else min(values),
        high=max(r.value for r in listed) if len(values) == 1 else max(values),
        n=len(values),
        of=of or first.model,
        imatrix=imatrix,
        reference=first.reference,
        text=first.text,
        sources=tuple(dict.fromkeys(sources[r.source] for r in listed)),
        stderr=first.stderr if len(listed) == 1 else None,
    )


def _comparable(rows: Sequence[Published]) -> Sequence[Published]:
    """Return the rows with the reference and text that most have: others are another quantity."""
    kinds: dict[tuple[str, str], list[Published]] = {}
    for row in rows:
        kinds.setdefault((row.reference, row.text), []).append(row)
    return max(kinds.values(), key=len)


@cache
def cache_loss(type_k: str, type_v: str) -> Loss:
    """Return what was published for K/V cache types, beside 16-bit ones; of any model."""
    kinds = {f"{type_k}/{type_v}".lower()}
    rows = [
        r
        for listed in _data()[1].values()
        for r in listed
        if r.kv_type.lower() in kinds and (r.reference == SAME_CACHE or r.file_type == "F16")
    ]
    found = {}
    for metric in METRICS:
        of_metric = [r for r in rows if r.metric == metric]
        if of_metric:
            found[metric] = _figure(of_metric, False, "models measured")
    return Loss(**found)
