"""Each candidate on a host: speed, memory, published loss, and which wishes it misses."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from tokcast.predictor.coefficients import Coefficients
from tokcast.predictor.host import Host
from tokcast.predictor.ledger import Workload
from tokcast.predictor.memory import MemoryUse, Setting, memory
from tokcast.predictor.prediction import Evidence
from tokcast.predictor.roofline import Question
from tokcast.predictor.select.candidate import Candidate
from tokcast.predictor.select.quality import Loss, loss_of
from tokcast.predictor.select.speeds import Plans, Speed, Speeds
from tokcast.predictor.select.types import SIXTEEN_BITS
from tokcast.predictor.select.wishes import N_GEN, Miss, Wishes, too_little, too_much
from tokcast.predictor.spec import ModelSpec
from tokcast.predictor.terms import Run

Goal = Literal["size", "speed", "quality", "turn", "memory"]


@dataclass(frozen=True, slots=True)
class Turn:
    """Seconds of a preset's first turn and of one in the middle of its later ones."""

    first_s: float
    later_s: float


@dataclass(frozen=True, slots=True)
class Row:
    """A candidate on a host.

    `ttft_s` is the time until the prompt is read and one token more is there. `available_bytes`
    is None where the host's memory is not known.
    """

    candidate: Candidate
    run: Run
    decode: Speed
    prefill: Speed
    ttft_s: float
    turn: Turn | None
    need_bytes: float
    available_bytes: float | None
    loss: Loss
    misses: tuple[Miss, ...]
    evidence: Evidence

    @property
    def is_feasible(self) -> bool:
        """Return whether it meets every wish and fits."""
        return not self.misses

    @property
    def spare_bytes(self) -> float | None:
        """Return the memory left."""
        return None if self.available_bytes is None else self.available_bytes - self.need_bytes


@dataclass(frozen=True, slots=True)
class Setup:
    """What a format's models are predicted with: the host as it is known, and how they are run."""

    host: Host
    run: Run
    coefficients: Coefficients


class _Format:
    """The speeds of one runtime."""

    def __init__(self, setup: Setup, wishes: Wishes, plans: Plans) -> None:
        host, run, coefficients = setup.host, setup.run, setup.coefficients
        self.run = run
        setting = (wishes.n_ubatch, wishes.type_k, wishes.type_v, wishes.flash_attention)

        def speeds(load: Workload) -> Speeds:
            return Speeds(Question(load, host, run, wishes.level), coefficients, plans)

        def prefill(n: int, depth: int) -> Speeds:
            return speeds(Workload("prefill", n, depth, *setting))

        def decode(depth: int) -> Speeds:
            return speeds(Workload("decode", 1, depth, *setting))

        preset = wishes.preset
        if preset is None:
            self.decode = decode(wishes.at_depth + N_GEN // 2)
            self.prefill = prefill(wishes.n_prompt, wishes.at_depth)
            return
        middle = preset.middle + preset.turn_input + preset.output // 2
        self.decode = decode(middle)
        self.prefill = prefill(preset.first_input, 0)
        self.first_decode = decode(preset.first_input + preset.output // 2)
        self.later_prefill = prefill(preset.turn_input, preset.middle)

    def turn(self, spec: ModelSpec, wishes: Wishes, first: Speed, later: Speed) -> Turn | None:
        """Return the seconds of a preset's turns; `first` is its first prompt's speed."""
        preset = wishes.preset
        if preset is None:
            return None
        first_s = first.seconds + preset.output * self.first_decode.of(spec).seconds
        if preset.new_input is None:
            return Turn(first_s, first_s)
        later_s = self.later_prefill.of(spec).seconds + preset.output * later.seconds
        return Turn(first_s, later_s)


class Judge:
    """Judges candidates on one host; `setup_of` gives what a model's format is predicted with."""

    def __init__(
        self,
        host: Host,
        available_bytes: float | None,
        setup_of: Callable[[str], Setup],
        wishes: Wishes,
    ) -> None:
        self.host = host
        self.available_bytes = available_bytes
        self.wishes = wishes
        self._setup_of = setup_of
        self._plans = Plans(wishes.type_k, wishes.type_v, wishes.flash_attention)
        self._formats: dict[str, _Format] = {}
        self._needs: dict[int, tuple[ModelSpec, MemoryUse]] = {}

    def row(self, candidate: Candidate) -> Row:
        """Return a candidate's figures and misses."""
        spec = candidate.spec
        f = self._format(spec.format)
        decode, prefill = f.decode.of(spec), f.prefill.of(spec)
        turn = f.turn(spec, self.wishes, prefill, decode)
        need = self.need_bytes(spec)
        loss = loss_of(candidate.model_id, spec.n_params, candidate.quant, candidate.imatrix)
        ttft_s = prefill.seconds + decode.seconds
        misses = tuple(self._misses(candidate, decode, ttft_s, turn, need, loss))
        return Row(
            candidate,
            f.run,
            decode,
            prefill,
            ttft_s,
            turn,
            need,
            self.available_bytes,
            loss,
            misses,
            f.decode.evidence,
        )

    def need_bytes(self, spec: ModelSpec) -> float:
        """Return what the memory that the model runs from must hold."""
        found = self._needs.get(id(spec.layers))
        if found is None:
            w = self.wishes
            setting = Setting(w.type_k, w.type_v, w.n_ubatch, w.flash_attention)
            use = memory(spec, w.context, setting)
            found = self._needs[id(spec.layers)] = (spec, use)
        # All but the weights is alike for the file types of a model.
        first, use = found
        had = use.unified_bytes if self.host.is_unified else use.device_bytes
        return had + _loaded(spec, self.host.is_unified) - _loaded(first, self.host.is_unified)

    def _format(self, name: str) -> _Format:
        found = self._formats.get(name)
        if found is None:
            setup = self._setup_of(name)
            found = self._formats[name] = _Format(setup, self.wishes, self._plans)
        return found

    def _misses(
        self,
        candidate: Candidate,
        decode: Speed,
        ttft_s: float,
        turn: Turn | None,
        need: float,
        loss: Loss,
    ) -> Iterator[Miss]:
        w, trained, there = self.wishes, candidate.spec.context_length, self.available_bytes
        if there is not None and need > there:
            yield too_much("memory", need, there, "bytes")
        if trained and w.context > trained:
            yield too_little("context", trained, w.context, "tokens")
        if w.min_decode is not None and decode.tok_per_s < w.min_decode:
            yield too_little("min-decode", decode.tok_per_s, w.min_decode, "tok/s")
        if w.max_ttft_s is not None and ttft_s > w.max_ttft_s:
            yield too_much("max-ttft", ttft_s, w.max_ttft_s, "s")
        if w.max_turn_s is not None and turn is not None and turn.later_s > w.max_turn_s:
            yield too_much("max-turn", turn.later_s, w.max_turn_s, "s")
        if w.largest_loss is not None or w.licences:
            yield from _papers(candidate, loss, w)


def _loaded(spec: ModelSpec, is_unified: bool) -> int:
    idle = ("mtp",) if is_unified else ("mtp", "embedding")
    return sum(g.n_bytes for g in spec.groups if g.component not in idle)


def _papers(candidate: Candidate, loss: Loss, w: Wishes) -> Iterator[Miss]:
    """Yield what the published loss and the licence miss."""
    figure = loss.ppl_ratio
    if w.largest_loss is not None:
        if figure is None and candidate.quant not in SIXTEEN_BITS:
            yield Miss("quality-floor", None, w.largest_loss, 1.0, "no figure published")
        elif figure is not None and figure.value > w.largest_loss:
            yield too_much("quality-floor", figure.value, w.largest_loss, "x perplexity")
    if w.licences:
        licence = candidate.licence
        if licence.lower() not in w.licences:
            words = "another licence" if licence else "no licence stated"
            yield Miss("license", licence or None, ", ".join(w.licences), 1.0, words)
