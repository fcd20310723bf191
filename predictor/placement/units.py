"""The time that one part of a model takes on one device, with the released scales.

A part's ledger is that of a model made of this part alone: ledgers add up, so the parts' times
add up to the whole model's. Equal parts of many layers are worked out once.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from tokcast.predictor.coefficients import Coefficients
from tokcast.predictor.host import Host
from tokcast.predictor.ledger import F32_BYTES, Work, Workload, ledger
from tokcast.predictor.placement.company import Role
from tokcast.predictor.placement.devices import Device
from tokcast.predictor.placement.inventory import INPUT, Part
from tokcast.predictor.prediction import Bound
from tokcast.predictor.roofline import SIDE, Question, scale, shape_of, shares_of
from tokcast.predictor.spec import Layer, ModelSpec
from tokcast.predictor.terms import Run, Term, terms
from tokcast.predictor.weights import group_of

# Weights in main memory are multiplied by on a card, after a copy, from so many tokens up
# (llama.cpp, MIT, commit 0c1e570: `offload_op` of its CUDA and Vulkan backends).
STREAMED_FROM = 32
# A file that is mapped is not where a card can fetch it: it is copied there first.
STAGED_PASSES = 2
_MADE_THERE = frozenset({"activations", "kv_write", "attention_op", "scores"})
# A slot of PCIe 4.0 x16 moves 31.5e9 bytes/s one way; x8 is usual beside a second card.
USUAL_LINK_BYTES_PER_S = 15.8e9


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """What a share of the time goes to: on which device, and which side of the roof sets it.

    Told apart by identity, which is quick: a `Timer` makes one of a kind.
    """

    role: Role
    device: int
    component: str
    type: str
    side: Bound


@dataclass(slots=True)
class Amount:
    """Seconds that go to a use, the bytes it moves and the operations it does."""

    seconds: float = 0.0
    n_bytes: float = 0.0
    flops: float = 0.0

    def add(self, other: "Amount", share: float = 1.0) -> None:
        """Add another amount, or a share of it."""
        self.seconds += other.seconds * share
        self.n_bytes += other.n_bytes * share
        self.flops += other.flops * share


Unit = tuple[Use, Amount]


def link_bytes_per_s(host: Host) -> float:
    """Return what a card's slot moves one way, bytes/s; a usual slot's where none is published."""
    return host.link_bytes_per_s or USUAL_LINK_BYTES_PER_S


def passes(load: Workload) -> tuple[Workload, ...]:
    """Return a prompt's whole micro-batches and its rest apart, decode as it is."""
    if load.phase == "decode" or load.n_prompt <= load.n_ubatch:
        return (load,)
    n_rest = load.n_prompt % load.n_ubatch
    if not n_rest:
        return (load,)
    n_whole = load.n_prompt - n_rest
    rest = replace(load, n_prompt=n_rest, n_depth=load.n_depth + n_whole)
    return (replace(load, n_prompt=n_whole), rest)


def n_micro_batches(load: Workload) -> int:
    """Return how often the weights are passed over."""
    return 1 if load.phase == "decode" else -(-load.n_prompt // load.n_ubatch)


def stream_bytes(spec: ModelSpec, load: Workload) -> float:
    """Return the bytes of the residual stream of all tokens, F32."""
    n_tokens = 1 if load.phase == "decode" else load.n_prompt
    return float(F32_BYTES * spec.embedding_length * n_tokens)


def streamed_from(run: Run, part: Part) -> float:
    """Return the tokens of a micro-batch from which a part is copied to a card.

    ik_llama.cpp waits until an expert is likely to get as many (its pull request 698).
    """
    _, _, used, of = part.key
    if run.runtime == "ik_llama.cpp" and part.is_expert and used:
        return STREAMED_FROM * of / used
    return STREAMED_FROM


@dataclass(slots=True)
class Timer:
    """Times of parts and layers under one workload and run; equal ones are worked out once."""

    spec: ModelSpec
    devices: tuple[Device, ...]
    question: Question
    coefficients: Coefficients
    _units: dict[object, tuple[Unit, ...]] = field(default_factory=dict)
    _scales: dict[object, float] = field(default_factory=dict)
    _uses: dict[tuple[Role, int, str, str, Bound], Use] = field(default_factory=dict)
    _tables: dict[tuple[int, int], tuple[tuple[Part, ...], tuple[tuple[Unit, ...], ...]]] = field(
        default_factory=dict
    )

    def use(self, role: Role, device: int, component: str, type_name: str, side: Bound) -> Use:
        """Return the one use of its kind."""
        key = (role, device, component, type_name, side)
        found = self._uses.get(key)
        if found is None:
            found = self._uses[key] = Use(*key)
        return found

    @property
    def streaming_card(self) -> Device | None:
        """Return the card that multiplies by weights in main memory, if one has its own memory."""
        return next((d for d in self.devices[:-1] if not d.host.is_unified), None)

    def table(self, parts: tuple[Part, ...], device: int) -> tuple[tuple[Unit, ...], ...]:
        """Return the units of each part on a device, where it reads anything."""
        found = self._tables.get((id(parts), device))
        if found is None:
            # The parts are kept as well, so that their number stays theirs.
            found = parts, tuple(self.part(part, device) for part in parts)
            self._tables[id(parts), device] = found
        return found[1]

    def part(self, part: Part, device: int) -> tuple[Unit, ...]:
        """Return the units of a part on a device; none where nothing but look-ups is done."""
        if part.is_copy or part.layer == INPUT:
            return ()
        total = part.sum
        key = (part.key, total.n_bytes, total.n_matmul_params, total.n_activations, device)
        return self._kept(key, lambda: self._part(part, device))

    def layer(self, layer: Layer, device: int, is_kept_there: bool) -> tuple[Unit, ...]:
        """Return the units of a layer's attention, state and additions on its cache's device.

        `is_kept_there`: not even a long prompt is worked on elsewhere (`--no-kv-offload`).
        """
        key = (layer.index, device, is_kept_there)
        found = self._units.get(key)
        if found is None:
            alike = (replace(layer, index=0), device, is_kept_there)
            found = self._kept(alike, lambda: self._layer(layer, device, is_kept_there))
            self._units[key] = found
        return found

    def _kept(self, key: object, make: Callable[[], tuple[Unit, ...]]) -> tuple[Unit, ...]:
        found = self._units.get(key)
        if found is None:
            found = self._units[key] = make()
        return found

    def _part(self, part: Part, device: int) -> tuple[Unit, ...]:
        slice_ = replace(self.spec, groups=(group_of(part.key, part.sum),), layers=())
        threshold = streamed_from(self.question.run, part)
        return tuple(self._sliced(slice_, device, threshold))

    def _layer(self, layer: Layer, device: int, is_kept_there: bool) -> tuple[Unit, ...]:
        slice_ = replace(self.spec, groups=(), layers=(layer,))
        threshold = float("inf") if is_kept_there else STREAMED_FROM
        return tuple(self._sliced(slice_, device, threshold))

    def _sliced(self, slice_: ModelSpec, device: int, threshold: float) -> Iterator[Unit]:
        """Yield the units of a slice; on the processor pass by pass, by how long each is."""
        if self.devices[device].kind == "gpu":
            yield from self._on(device, slice_, self.question.workload, "card")
            return
        card = self.streaming_card
        for load in passes(self.question.workload):
            n_tokens = 1 if load.phase == "decode" else min(load.n_prompt, load.n_ubatch)
            if card is not None and n_tokens >= threshold:
                yield from self._on(card.index, slice_, load, "streamed")
                yield from self._copied(card, ledger(slice_, load))
            else:
                yield from self._on(device, slice_, load, "cpu")

    def _on(self, device: int, slice_: ModelSpec, load: Workload, role: Role) -> Iterator[Unit]:
        works = ledger(slice_, load)
        found = terms(works, self.devices[device].host, self.run(device), load.phase)
        if role == "cpu" and load.phase == "decode" and not self.devices[device].host.architecture:
            # Of a processor that is only known by its memory, bytes alone are counted.
            found = tuple(t for t in found if t.kind != "compute")
        scales = [self._scale(term, device) for term in found]
        moved = {(w.component, w.type): w for w in works}
        for share in shares_of(found, scales, load.phase):
            if share.seconds:
                term = share.term
                side = SIDE[term.kind]
                use = self.use(_role(role, term), device, term.component, term.type, side)
                # A component's work is told once, with its first share.
                work = moved.pop((term.component, term.type), None)
                counted = (work.bytes, work.flops) if work else (0.0, 0.0)
                yield use, Amount(share.seconds, *counted)

    def _copied(self, card: Device, works: tuple[Work, ...]) -> Iterator[Unit]:
        """Yield the copy of weights and cache to a card: read and written once, then sent."""
        moved = sum(w.bytes for w in works if w.component not in _MADE_THERE)
        memory = self.devices[-1].host.bytes_per_s
        parts: tuple[tuple[Role, float], ...] = (
            ("link", moved / link_bytes_per_s(card.host)),
            ("staging", STAGED_PASSES * moved / memory),
        )
        for role, seconds in parts:
            use = self.use(role, card.index, "copies to the card", "", "memory")
            yield use, Amount(seconds, moved if role == "link" else 0.0)

    def run(self, device: int) -> Run:
        """Return how a device is run: the processor by its own backend."""
        run = self.question.run
        return run if self.devices[device].kind == "gpu" else replace(run, backend="CPU", stack="")

    def _scale(self, term: Term, device: int) -> float:
        key = (device, term.kind, term.component, term.type)
        found = self._scales.get(key)
        if found is None:
            q = replace(self.question, host=self.devices[device].host, run=self.run(device))
            shape = shape_of(self.spec, self.question.workload)
            found = self._scales[key] = scale(self.coefficients.effects, term, q, shape)
        return found


def _role(role: Role, term: Term) -> Role:
    if term.kind != "launch":
        return role
    return "loop" if role == "cpu" else "launch"
