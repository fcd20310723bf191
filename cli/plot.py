"""`tokcast plot`: the page's drawings from the command line."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tokcast.cli.charts.bars import Bar, draw_bars
from tokcast.cli.charts.depth import draw_depth
from tokcast.cli.charts.png import png_of
from tokcast.cli.charts.roofline import draw_roofline
from tokcast.cli.charts.theme import theme_of
from tokcast.cli.fitting import fit
from tokcast.cli.measured import measured_of
from tokcast.cli.names import short_name
from tokcast.cli.options import host_of, one_count
from tokcast.cli.recommend import options_of, recommend
from tokcast.cli.render import size
from tokcast.cli.running import run_of
from tokcast.cli.scene import (
    Scene,
    Setting,
    decode_depths,
    prefill_depths,
    roofline_of,
    scene_of,
)
from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host
from tokcast.predictor.model import model_spec
from tokcast.predictor.prediction import Prediction
from tokcast.predictor.sources import open_model
from tokcast.predictor.sources.open import DEFAULT_FILE_TYPE
from tokcast.predictor.spec import ModelSpec

T = TypeVar("T")
MOST_SERIES, MOST_BARS = 4, 40
WIDTHS = (280, 4000)


@dataclass(frozen=True, slots=True)
class Request:
    """What was typed, as text."""

    models: tuple[str, ...]
    hosts: tuple[str, ...]
    backend: str | None
    n_prompt: str
    n_depth: str
    phase: str
    theme: str
    width: str
    offline: bool
    output: str


def run(kind: str, request: Request) -> int:
    """Draw and write a file; raises InputError for what can't be drawn or written."""
    path = Path(request.output)
    if path.suffix.lower() not in (".svg", ".png"):
        raise InputError(f"-o {request.output}: expected a file that ends in .svg or .png")
    draw = {"roofline": _roofline, "depth": _depth, "quants": _quants, "hosts": _hosts}[kind]
    svg = draw(request)
    content = png_of(svg) if path.suffix.lower() == ".png" else svg.encode()
    try:
        path.write_bytes(content)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; expected a file to write") from None
    print(f"{path}: {len(content):,} bytes")
    return 0


def _setting(request: Request) -> Setting:
    return Setting(
        n_prompt=one_count(request.n_prompt, "-p"), n_depth=one_count(request.n_depth, "-d", 0)
    )


def _width(request: Request) -> float:
    width = one_count(request.width, "--width", WIDTHS[0])
    if width > WIDTHS[1]:
        raise InputError(f"--width {width}: expected {WIDTHS[0]} to {WIDTHS[1]} pixels")
    return float(width)


def _spec(address: str, request: Request) -> ModelSpec:
    spec = model_spec(open_model(address, offline=request.offline or None))
    if not spec.n_params:
        raise InputError(f"{address}: holds no weights; nothing to draw")
    return spec


def _scene(spec: ModelSpec, host: Host, request: Request) -> Scene:
    run = run_of(spec, host, None, request.backend, flash=None, is_here=not request.hosts)
    name, at, file_type = spec.source.partition("@")
    found = measured_of(name, file_type, host.name, run.backend) if at else ()
    return scene_of(spec, host, run, _setting(request), found, is_here=not request.hosts)


def _hosts_of(request: Request) -> list[Host]:
    names: Sequence[str | None] = request.hosts or (None,)
    return [host_of(name, None, None, None)[0] for name in names]


def _scenes(request: Request) -> list[Scene]:
    """Return every model on every host."""
    specs = [_spec(address, request) for address in request.models]
    scenes = [_scene(spec, host, request) for spec in specs for host in _hosts_of(request)]
    if not 1 <= len(scenes) <= MOST_SERIES:
        raise InputError(
            f"{len(scenes)} pairs of model and host; expected 1 to {MOST_SERIES} in one drawing"
        )
    return scenes


def _roofline(request: Request) -> str:
    scenes, theme, width = _scenes(request), theme_of(request.theme), _width(request)
    roofs = [roofline_of(s, [s.predict("decode"), s.predict("prefill")]) for s in scenes]
    across = {"width": width, "height": 0.6 * width}
    return draw_roofline(roofs, "Roofline", **across, theme=theme, is_alone=True)


def _depth(request: Request) -> str:
    scenes = _scenes(request)
    title, curve = _phase(
        request,
        ("Generating, as the context fills", decode_depths),
        ("Reading, as the context fills", prefill_depths),
    )
    at = one_count(request.n_depth, "-d", 0) or None
    theme, width = theme_of(request.theme), _width(request)
    curves, across = [curve(s) for s in scenes], {"width": width, "height": 0.5 * width}
    return draw_depth(curves, title, at_depth=at, **across, theme=theme, is_alone=True)


def _phase(request: Request, decode: T, prefill: T) -> T:
    choices = {"decode": decode, "prefill": prefill}
    if request.phase not in choices:
        raise InputError(f"--phase {request.phase!r}: expected decode or prefill")
    return choices[request.phase]


def _bar(label: str, p: Prediction, note: str, is_faded: bool) -> Bar:
    return Bar(label, p.tok_per_s, p.low, p.high, note, is_faded)


def _quants(request: Request) -> str:
    if len(request.models) != 1 or len(request.hosts) > 1:
        raise InputError("plot quants: expected one model of the catalogue and one host")
    name, _, like = request.models[0].partition("@")
    (host,), setting = _hosts_of(request), _setting(request)

    def open_spec(address: str) -> ModelSpec:
        return _spec(address, request)

    open_spec(f"{name}@{like or DEFAULT_FILE_TYPE}")
    n_context = setting.n_depth + max(setting.n_prompt, setting.n_gen)
    like, is_here = like or DEFAULT_FILE_TYPE, not request.hosts
    found = options_of(name, like, host, setting, n_context, open_spec, is_here=is_here)
    options = recommend(list(found), None).options
    which = _phase(request, "Generating", "Reading")
    bars = [
        _bar(
            f"{o.file_type}  {o.bits:.2f} bit",
            _phase(request, o.decode, o.prefill),
            size(o.spec.n_bytes) + ("" if o.fit.fits is not False else ", no room"),
            o.fit.fits is False,
        )
        for o in options
    ]
    title = f"{which}: {name} on {host.name}"
    return draw_bars(bars, title, width=_width(request), theme=theme_of(request.theme))


USUAL_HOSTS = (
    "RTX 5090",
    "RTX 4090",
    "RTX 3090",
    "RX 7900 XTX",
    "M4 Max 40-core",
    "M2 Ultra 76-core",
    "Ryzen AI Max+ 395",
    "RTX 3060 12GB",
    "M4 10-core",
)


def _hosts(request: Request) -> str:
    if len(request.models) != 1:
        raise InputError("plot hosts: expected one model")
    names = request.hosts or USUAL_HOSTS
    if len(names) > MOST_BARS:
        raise InputError(f"plot hosts: {len(names)} hosts; expected at most {MOST_BARS}")
    spec, setting = _spec(request.models[0], request), _setting(request)
    bars = []
    for host in (host_of(name, None, None, None)[0] for name in names):
        scene = _scene(spec, host, request)
        room = _room(scene)
        p = scene.predict("prefill" if request.phase == "prefill" else "decode")
        bars.append(_bar(host.name, p, "" if room is not False else "no room", room is False))
    bars.sort(key=lambda b: -b.value)
    which = _phase(request, "Generating", "Reading")
    title = f"{which}: {short_name(spec.name)} {spec.file_type}, depth {setting.n_depth}"
    return draw_bars(bars, title, width=_width(request), theme=theme_of(request.theme))


def _room(scene: Scene) -> bool | None:
    s = scene.setting
    n_context = s.n_depth + max(s.n_prompt, s.n_gen)
    return fit(scene.spec, scene.host, n_context, s.memory).fits
