"""From a checked body to answers and scenes."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tokcast.cli.charts.depth import Curve
from tokcast.cli.measured import measured_of
from tokcast.cli.placed import inventory_of, placed_answer
from tokcast.cli.placement_words import Words
from tokcast.cli.placing import placing_on
from tokcast.cli.predict import answer_of
from tokcast.cli.predict_answer import Answer
from tokcast.cli.predict_data import answer_data
from tokcast.cli.predict_energy import EnergyAsked, asked_of
from tokcast.cli.predict_notes import all_host_notes
from tokcast.cli.predict_request import Asked, Request
from tokcast.cli.running import is_here, run_of
from tokcast.cli.scene import Scene, Setting, decode_depths, prefill_depths, scene_of
from tokcast.cli.web.config import Config
from tokcast.cli.web.library import Library, checked
from tokcast.cli.web.lru import Lru
from tokcast.cli.web.problems import Refused
from tokcast.cli.web.schemas import Pair, PredictIn
from tokcast.hosts.custom import override
from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host
from tokcast.predictor.placement.inventory import Inventory
from tokcast.predictor.placement.plan import place
from tokcast.predictor.spec import ModelSpec

Named = tuple[Host, tuple[str, ...]]


class Engine:
    """Predictions for one server; what was worked out lately is kept, within bounds."""

    def __init__(self, config: Config, library: Library) -> None:
        self.config = config
        self.library = library
        self._hosts: Lru[Named] = Lru(256)
        self._answers: Lru[bytes] = Lru(512)
        self._curves: Lru[tuple[Curve, Curve]] = Lru(128)

    def host(self, pair: Any) -> Named:
        """Return a pair's host and what is uncertain about it; raises InputError, Refused."""
        host, notes = self.named(pair.host)
        return override(host, pair.bytes_per_s, pair.flops_per_s, pair.memory_bytes), notes

    def named(self, name: str | None) -> Named:
        """Return the host of a name, None for this machine; raises InputError, Refused."""
        return self._hosts.made(name or None, lambda: self._found(name))

    def _found(self, name: str | None) -> Named:
        from tokcast.cli.options import detected, named

        if name is None or not name.strip():
            if self.config.public:
                raise Refused(403, "this server does not tell what it runs on: name a host")
            return detected()
        if not name.isprintable() or name.lower().endswith(".toml"):
            raise InputError("host: expected the name of a chip, such as RTX 4090")
        return named(name)

    def needs_fetch(self, pairs: tuple[Any, ...]) -> bool:
        """Return whether a model must be read from somewhere first, which takes time."""
        return any(self.library.known(pair.model) is None for pair in pairs)

    def fetch(self, pairs: tuple[Any, ...]) -> None:
        """Read the models of pairs, so that `needs_fetch` is false."""
        for pair in pairs:
            self.library.open(pair.model)

    def spec(self, address: str) -> ModelSpec:
        """Return a model that can run."""
        return checked(self.library.open(address), address)

    def predict(self, body: PredictIn) -> bytes:
        """Return the documented prediction JSON."""
        return self._answers.made(body, lambda: self._predicted(body))

    def _predicted(self, body: PredictIn) -> bytes:
        return json.dumps(answer_data(self.answer(body)), allow_nan=False).encode()

    def answer(self, body: PredictIn) -> Answer:
        """Return the prediction of one pair."""
        if not body.n_prompt and not body.n_gen:
            raise InputError("n_prompt and n_gen are empty: nothing to predict")
        host, notes = self.host(body)
        placing = None if host.n_devices == 1 else placing_on(host, notes)
        asked = Asked(
            n_prompts=body.n_prompt,
            n_gens=body.n_gen,
            n_depths=body.n_depth,
            n_ubatch=body.n_ubatch,
            type_k=body.type_k,
            type_v=body.type_v,
            flash_attention=body.flash_attention is not False,
            n_context=body.n_context,
            host=host if placing is None else placing.machine.host,
            host_notes=all_host_notes(host, notes) if placing is None else placing.machine.notes,
            placing=placing,
            energy=_energy(body, host),
        )
        if placing is not None:
            return placed_answer(self._inventory(body.model), _request(body), asked, placing)
        return answer_of(self.spec(body.model), body.model, _request(body), asked)

    def _inventory(self, address: str) -> Inventory:
        spec, header = self.library.both(address)
        return inventory_of(header, address, spec)

    def scene(self, pair: Pair, setting: Setting) -> Scene:
        """Return what is drawn and told of one pair."""
        spec = self.spec(pair.model)
        host, _ = self.host(pair)
        words, flash = (pair.runtime, pair.backend), setting.flash_attention
        run = run_of(spec, host, *words, flash=flash, is_here=not pair.host)
        model_id, at, file_type = spec.source.partition("@")
        is_known = at and host.n_devices == 1
        found = measured_of(model_id, file_type, host.name, run.backend) if is_known else ()
        scene = scene_of(spec, host, run, setting, found, is_here=_is_here(pair))
        if host.n_devices == 1:
            return scene
        devices = placing_on(host).machine.devices
        return replace(scene, placement=place(self._inventory(pair.model), devices))

    def curves(self, pair: Pair, scene: Scene) -> tuple[Curve, Curve]:
        """Return decode and prefill speed over depth; they don't depend on the setting's depth."""
        key = (pair, replace(scene.setting, n_depth=0))
        return self._curves.made(key, lambda: (decode_depths(scene), prefill_depths(scene)))


def _energy(body: PredictIn, host: Host) -> EnergyAsked | None:
    """Return what is asked of energy; raises InputError where it can't be told."""
    price, grid, limit = body.price_per_kwh, body.grid, body.power_limit_w
    asked = asked_of(
        body.energy,
        None if price is None else repr(price),
        grid,
        None if limit is None else repr(limit),
    )
    if asked is not None and host.n_devices > 1:
        raise InputError("energy is of a model on one device; expected a host of one")
    return asked


def _is_here(pair: Any) -> bool:
    return is_here(pair.host, pair.bytes_per_s, pair.flops_per_s)


def _request(body: PredictIn) -> Request:
    """Return the body as what the command line would have been told."""
    words: Mapping[str, Any] = dict.fromkeys(Request.__slots__, "")
    own = {"addresses": (body.model,), "host": body.host or None, "backend": body.backend}
    flash = {None: "auto", True: "on", False: "off"}[body.flash_attention]
    # Another rate than this machine's makes it another machine: no calibration is of it.
    rate = "" if _is_here(body) else "given"
    more = {"runtime": body.runtime, "flash_attn": flash, "explain": False, "offline": False}
    return Request(**{**words, **own, **more, "bandwidth": rate, "placement": Words()})
