"""A model on a host under a setting, and all that is drawn or told of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tokcast.cli.charts.depth import Curve
from tokcast.cli.charts.roofline import Ceiling, Point, Roofline, Slope
from tokcast.cli.charts.scales import depths
from tokcast.cli.names import short_name
from tokcast.cli.running import applied
from tokcast.fits.released import released
from tokcast.predictor.coefficients import Coefficients
from tokcast.predictor.curve import decode_curve
from tokcast.predictor.host import Host
from tokcast.predictor.ledger import Phase, Workload
from tokcast.predictor.memory import Setting as MemorySetting
from tokcast.predictor.prediction import Prediction
from tokcast.predictor.roofline import Question, predict, tokens_of
from tokcast.predictor.spec import ModelSpec
from tokcast.predictor.terms import Run

if TYPE_CHECKING:
    from tokcast.cli.measured import Measured
    from tokcast.predictor.placement.plan import Placement

LONGEST_DRAWN = 131072
N_DECODE, N_PREFILL = 25, 9
# Where a phase's point lies within so much of the ridge, inputs that are a fifth off change sides.
NEAR_RIDGE = 1.25

_CEILINGS = (
    ("matrix_fp16_flops_per_s", "FP16 matrix"),
    ("matrix_fp32acc_flops_per_s", "FP16 matrix, FP32 sums"),
    ("int8_ops_per_s", "INT8"),
    ("fp16_flops_per_s", "FP16 vector"),
    ("fp32_flops_per_s", "FP32 vector"),
)


@dataclass(frozen=True, slots=True)
class Setting:
    """Lengths in tokens and types of a run; `flash_attention` None leaves it to the runtime."""

    n_prompt: int = 512
    n_gen: int = 128
    n_depth: int = 0
    n_ubatch: int = 512
    type_k: str = "F16"
    type_v: str = "F16"
    flash_attention: bool | None = None

    @property
    def is_flash(self) -> bool:
        """Return whether flash attention is on, as runtimes leave it unless told otherwise."""
        return self.flash_attention is not False

    @property
    def memory(self) -> MemorySetting:
        """Return how caches are kept."""
        return MemorySetting(self.type_k, self.type_v, self.n_ubatch, self.is_flash)

    def workload(self, phase: Phase) -> Workload:
        """Return one phase's workload; decode is stood for by its middle token."""
        depth = self.n_depth + (self.n_gen // 2 if phase == "decode" else 0)
        tail = (self.n_ubatch, self.type_k, self.type_v, self.is_flash)
        return Workload(phase, 1 if phase == "decode" else self.n_prompt, depth, *tail)


@dataclass(frozen=True, slots=True)
class Scene:
    """What is asked about."""

    spec: ModelSpec
    host: Host
    run: Run
    setting: Setting
    measured: "tuple[Measured, ...]" = ()
    coefficients: Coefficients = field(default_factory=released)
    calibration: str = ""
    placement: "Placement | None" = None

    @property
    def label(self) -> str:
        """Return the model and the host in few words."""
        n = f"{self.host.n_devices}x " if self.host.n_devices > 1 else ""
        name = f"{short_name(self.spec.name)} {self.spec.file_type}".strip()
        return f"{name} on {n}{self.host.name}"

    @property
    def longest(self) -> int:
        """Return the deepest context to draw."""
        known = self.spec.context_length or 32768
        return max(min(known, LONGEST_DRAWN) - max(self.setting.n_prompt, self.setting.n_gen), 1)

    def question(self, phase: Phase, n_depth: int | None = None) -> Question:
        """Return the question for a phase, at the setting's depth or another."""
        setting = self.setting if n_depth is None else replace(self.setting, n_depth=n_depth)
        return Question(setting.workload(phase), self.host, self.run)

    def predict(self, phase: Phase, n_depth: int | None = None) -> Prediction:
        """Return the prediction of a phase, of the model as it is placed where it is."""
        q = self.question(phase, n_depth)
        if self.placement is None:
            return predict(self.spec, q, self.coefficients)
        from tokcast.cli.placed import speed_of

        return speed_of(self.placement, q.workload, self.run)(self.placement)


def scene_of(
    spec: ModelSpec,
    host: Host,
    run: Run,
    setting: Setting,
    measured: "tuple[Measured, ...]" = (),
    *,
    is_here: bool,
) -> Scene:
    """Return a scene, calibrated where it is this machine and it was."""
    found = applied(host, run, is_here=is_here)
    return Scene(spec, found.host, run, setting, measured, found.coefficients, found.summary)


def decode_depths(scene: Scene) -> Curve:
    """Return decode speed over depth."""
    if scene.placement is not None:
        return _predicted(scene, "decode", N_DECODE)
    curve = decode_curve(scene.spec, scene.question("decode", 0), scene.coefficients)
    asked = depths(scene.longest, N_DECODE)
    half = scene.setting.n_gen // 2
    found = [curve.at(d + half) for d in asked]
    return _curve(scene, "decode", asked, found)


def prefill_depths(scene: Scene) -> Curve:
    """Return prefill speed over depth."""
    return _predicted(scene, "prefill", N_PREFILL)


def _predicted(scene: Scene, phase: Phase, n: int) -> Curve:
    asked = depths(scene.longest, n)
    predictions = [scene.predict(phase, d) for d in asked]
    return _curve(scene, phase, asked, [(p.tok_per_s, p.low, p.high) for p in predictions])


def _curve(
    scene: Scene,
    phase: Phase,
    asked: tuple[int, ...],
    found: Sequence[tuple[float, float, float]],
) -> Curve:
    rates, low, high = zip(*found, strict=True)
    measured = tuple(
        (m.n_depth, m.tok_per_s, m.source)
        for m in scene.measured
        if m.phase == phase and (phase == "decode" or m.n_prompt == scene.setting.n_prompt)
    )
    return Curve(scene.label, asked, rates, low, high, measured)


def ceilings_of(host: Host) -> tuple[Ceiling, ...]:
    """Return the published rates of a host, one of each height, highest first."""
    found: dict[float, str] = {}
    for name, label in _CEILINGS:
        value = getattr(host, name)
        if value:
            found[value] = f"{found[value]}, {label}" if value in found else label
    return tuple(Ceiling(found[rate], rate) for rate in sorted(found, reverse=True))


def slopes_of(host: Host, link_bytes_per_s: float | None) -> tuple[Slope, ...]:
    """Return the levels of memory that are published: the device's own, and its link."""
    own = Slope(host.memory_type.split()[0] if host.memory_type else "memory", host.bytes_per_s)
    if link_bytes_per_s is None:
        return (own,)
    return (own, Slope("link to main memory", link_bytes_per_s))


def phase_point(p: Prediction, setting: Setting) -> Point:
    """Return the point of a whole phase, its interval with it."""
    flops = sum(c.flops for c in p.components)
    n_bytes = sum(c.bytes for c in p.components)
    n_tokens = tokens_of(setting.workload(p.phase))
    per_token = flops / n_tokens
    return Point(
        f"{p.phase} at depth {setting.n_depth}",
        p.phase,
        "phase",
        flops,
        n_bytes,
        p.seconds,
        low=p.low * per_token,
        high=p.high * per_token,
    )


def component_points(p: Prediction) -> tuple[Point, ...]:
    """Return a point a component that both moves bytes and computes, types taken together."""
    sums: dict[str, list[float]] = {}
    for c in p.components:
        # The products of attention read the K/V cache, which the ledger lists on its own.
        name = "attention over the K/V cache" if c.component in _OF_ATTENTION else c.component
        row = sums.setdefault(name, [0.0, 0.0, 0.0])
        for i, value in enumerate((c.flops, c.bytes, c.seconds)):
            row[i] += value
    return tuple(
        Point(f"{p.phase}, {name.replace('_', ' ')}", p.phase, "component", *row)
        for name, row in sums.items()
        if all(row)
    )


_OF_ATTENTION = frozenset({"kv_read", "attention_op", "scores"})


def roofline_of(scene: Scene, predictions: Sequence[Prediction]) -> Roofline:
    """Return the roof of a scene's host and the points of its phases under it."""
    points: list[Point] = []
    for p in predictions:
        points += component_points(p)
        points.append(phase_point(p, scene.setting))
    for m in scene.measured:
        n_tokens = 1 if m.phase == "decode" else m.n_prompt
        label = f"measured {m.phase}, {m.source}"
        points.append(Point(label, m.phase, "measured", m.flops, m.bytes, n_tokens / m.tok_per_s))
    slopes = slopes_of(scene.host, link_of(scene.host))
    return Roofline(scene.label, slopes, ceilings_of(scene.host), tuple(points))


def link_of(host: Host) -> float | None:
    """Return the bytes a second of a card's link to main memory, None where none is known."""
    return host.link_bytes_per_s


def side_of(point: Point, roof: Roofline) -> str:
    """Return which side of the ridge a point lies on, "" where that is too close to call."""
    if roof.ridge is None:
        return ""
    ratio = point.intensity / roof.ridge
    if 1 / NEAR_RIDGE < ratio < NEAR_RIDGE:
        return ""
    return "memory" if ratio < 1 else "compute"
