"""What `tokcast predict` is asked: as text, and parsed and checked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tokcast.cli.options import cache_type, counts, flash_attention, host_of, one_count
from tokcast.cli.placement_words import Words
from tokcast.cli.predict_notes import all_host_notes
from tokcast.hosts.parts import has_parts
from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host
from tokcast.predictor.ledger import Workload
from tokcast.predictor.memory import Setting
from tokcast.predictor.spec import ModelSpec

if TYPE_CHECKING:
    from tokcast.cli.placing import Placing
    from tokcast.cli.predict_energy import EnergyAsked
    from tokcast.cli.tasks import TaskLoad

DEFAULT_DEPTHS = (0, 4096, 16384)


N_TASKS, SEED = "1000", "1"


@dataclass(frozen=True, slots=True)
class Request:
    """What was typed, as text."""

    addresses: tuple[str, ...]
    host: str | None
    backend: str | None
    runtime: str | None
    n_prompt: str
    n_gen: str
    n_depth: str | None
    n_ubatch: str
    type_k: str
    type_v: str
    flash_attn: str
    n_context: str | None
    bandwidth: str | None
    tflops: str | None
    memory: str | None
    explain: bool
    offline: bool
    workload: str | None = None
    trace: str | None = None
    n_tasks: str = N_TASKS
    seed: str = SEED
    energy: bool = False
    price: str | None = None
    grid: str | None = None
    power_limit: str | None = None
    placement: Words = field(default_factory=Words)

    @property
    def asks_energy(self) -> bool:
        """Return whether energy is asked for, if only by what it would cost or emit."""
        return self.energy or (self.price, self.grid, self.power_limit) != (None, None, None)


@dataclass(frozen=True, slots=True)
class Asked:
    """The same, parsed and checked; the host may have notes on what is uncertain about it."""

    n_prompts: tuple[int, ...]
    n_gens: tuple[int, ...]
    n_depths: tuple[int, ...] | None
    n_ubatch: int
    type_k: str
    type_v: str
    flash_attention: bool
    n_context: int | None
    host: Host
    host_notes: tuple[str, ...]
    load: "TaskLoad | None" = None
    energy: "EnergyAsked | None" = None
    placing: "Placing | None" = None

    @property
    def setting(self) -> Setting:
        """Return how caches are kept on one device."""
        return Setting(self.type_k, self.type_v, self.n_ubatch, self.flash_attention)


def parse(request: Request) -> Asked:
    """Return the checked request; raises InputError naming the flag."""
    n_prompts = tuple(n for n in counts(request.n_prompt, "-p") if n)
    n_gens = tuple(n for n in counts(request.n_gen, "-n") if n)
    if not n_prompts and not n_gens:
        raise InputError("-p 0 -n 0: nothing to predict; expected a prompt or tokens to generate")
    depths, context = request.n_depth, request.n_context
    host, notes, placing = _where(request)
    return Asked(
        n_prompts=n_prompts,
        n_gens=n_gens,
        n_depths=None if depths is None else counts(depths, "-d"),
        n_ubatch=one_count(request.n_ubatch, "-ub"),
        type_k=cache_type(request.type_k, "-ctk"),
        type_v=cache_type(request.type_v, "-ctv"),
        flash_attention=flash_attention(request.flash_attn),
        n_context=None if context is None else one_count(context, "-c"),
        host=host,
        host_notes=notes if placing is not None else all_host_notes(host, notes),
        load=_load(request),
        energy=_energy(request),
        placing=placing,
    )


def _where(request: Request) -> "tuple[Host, tuple[str, ...], Placing | None]":
    """Return the chip asked about, notes on it, and the placement where one is asked for."""
    given = (request.host, request.bandwidth, request.tflops, request.memory)
    if not has_parts(request.host or ""):
        host, notes = host_of(*given)
        if host.n_devices == 1 and not request.placement.is_any:
            return host, notes, None
    if request.asks_energy or request.workload or request.trace:
        raise InputError(
            "--energy, --workload and --trace are of a model on one device; leave out what places"
            " it over several"
        )
    from tokcast.cli.placing import placing_of

    placing = placing_of(request.placement, *given)
    return placing.machine.host, placing.machine.notes, placing


def _load(request: Request) -> "TaskLoad | None":
    if request.workload is None and request.trace is None:
        if (request.n_tasks, request.seed) != (N_TASKS, SEED):
            raise InputError("--tasks and --seed are of tasks; expected --workload or --trace too")
        return None
    from tokcast.cli.tasks import load_of

    return load_of(request.workload, request.trace, request.n_tasks, request.seed)


def _energy(request: Request) -> "EnergyAsked | None":
    if not request.asks_energy:
        return None
    from tokcast.cli.predict_energy import asked_of

    return asked_of(request.energy, request.price, request.grid, request.power_limit)


def depths_of(spec: ModelSpec, asked: Asked) -> tuple[int, ...]:
    """Return the depths asked for, or the usual ones that a model was trained for."""
    if asked.n_depths is not None:
        return asked.n_depths
    longest = spec.context_length or max(DEFAULT_DEPTHS)
    room = longest - max((*asked.n_prompts, *asked.n_gens))
    return tuple(d for d in DEFAULT_DEPTHS if d <= room) or (0,)


def workloads_of(asked: Asked, depth: int) -> Iterator[tuple[int, Workload]]:
    """Yield the tokens generated and the workload of each test at one depth."""
    setting = (asked.n_ubatch, asked.type_k, asked.type_v, asked.flash_attention)
    for n in asked.n_prompts:
        yield 0, Workload("prefill", n, depth, *setting)
    for n in asked.n_gens:
        yield n, Workload("decode", 1, depth + n // 2, *setting)


def context_of(asked: Asked, depths: Sequence[int]) -> int:
    """Return the context to hold in memory: the one asked for, or the longest test's."""
    return asked.n_context or max(depths) + max((*asked.n_prompts, *asked.n_gens))


def check_weights(spec: ModelSpec, address: str) -> None:
    """Raise InputError for a file without weights."""
    if not spec.n_params:
        raise InputError(f"{address}: holds no weights, only a vocabulary; nothing to predict")
