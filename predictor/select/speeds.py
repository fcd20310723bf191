"""Speed of many models on one host, from the same terms as `roofline.predict`.

A term's time is linear in what a model moves and computes, so the seconds that a byte, an
operation and a launch take are worked out once for each component and type and then only
multiplied. They come from `term_pair` and `scale` themselves, asked about one unit of each.
"""

import math
from dataclasses import dataclass, field, replace
from operator import mul

from tokcast.predictor.coefficients import Coefficients
from tokcast.predictor.effects import Shape
from tokcast.predictor.ledger import LedgerPlan, Work, Workload, compile_ledger
from tokcast.predictor.prediction import Evidence
from tokcast.predictor.roofline import (
    Question,
    cap_of,
    ceiling_tok_per_s,
    evidence_of,
    interval_of,
    scale,
    shape_of,
    shares_of,
    tokens_of,
)
from tokcast.predictor.spec import ModelSpec, WeightGroup
from tokcast.predictor.terms import LAUNCH_SECONDS, OVERLAP, Term, TermKind, term_pair

# Any type will do where only the model's shape is asked about.
_SOME_TYPE = "Q8_0"


@dataclass(frozen=True, slots=True)
class Speed:
    """Tokens/s with an interval, and the seconds of the whole workload."""

    tok_per_s: float
    low: float
    high: float
    seconds: float


# What a weight group's figures cost in seconds: a stored byte's memory, a parameter's
# arithmetic, what of a byte overlaps with neither, a tensor's launches. Then bytes read a stored
# byte and operations a parameter, for the ceiling.
_Unit = tuple[float, float, float, float, float, float]
# Seconds of a byte's and of an operation's terms, and the same terms' kinds.
_Terms = tuple[tuple[float, ...], tuple[float, ...]]
_Kinds = tuple[tuple[TermKind, ...], tuple[TermKind, ...]]


@dataclass(slots=True)
class _Body:
    """A model's time outside its weights, and the units met so far; `layers` is kept alive."""

    layers: object
    plan: LedgerPlan
    shape: Shape
    n_token: int
    launch_s: float
    seconds: float = 0.0
    n_bytes: float = 0.0
    flops: float = 0.0
    per_lookup: float = 0.0
    lookups: dict[str, float] = field(default_factory=dict)
    units: dict[tuple[str, str, float], _Unit] = field(default_factory=dict)
    factors: dict[str, _Terms] = field(default_factory=dict)
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)


class Plans:
    """Ledger plans of models, one for all file types that share their layers."""

    def __init__(self, type_k: str, type_v: str, flash_attention: bool) -> None:
        self._setting = (type_k, type_v, flash_attention)
        self._found: dict[int, tuple[ModelSpec, LedgerPlan]] = {}

    def of(self, spec: ModelSpec) -> LedgerPlan:
        """Return the plan of a model with the weights of the first file type met."""
        found = self._found.get(id(spec.layers))
        if found is None:
            found = self._found[id(spec.layers)] = (spec, compile_ledger(spec, *self._setting))
        return found[1]


class Speeds:
    """One workload's speed for many models on one host."""

    def __init__(self, question: Question, coefficients: Coefficients, plans: Plans) -> None:
        self.question = question
        self._coefficients = coefficients
        self._plans = plans
        self._power = OVERLAP[question.workload.phase]
        self._n_tokens = tokens_of(question.workload)
        self.evidence: Evidence = evidence_of(coefficients, question)
        host = question.host
        self._byte_s = 1 / ceiling_tok_per_s((Work("", "", 1.0, 0.0, 0.0),), host, 1)
        self._flop_s = 1 / ceiling_tok_per_s((Work("", "", 0.0, 1.0, 0.0),), host, 1)
        self._bodies: dict[int, _Body] = {}
        self._shares: dict[tuple[str, float], tuple[float, float, float]] = {}
        self._terms: dict[tuple[str, str], _Terms] = {}
        self._kinds: dict[str, _Kinds] = {}
        # Effects of a model's shape are found relative to this one's.
        self._some = Shape(model="", architecture="", embedding_length=4096)
        self._some_scales: dict[tuple[str, str], float] = {}

    def of(self, spec: ModelSpec) -> Speed:
        """Return the speed of a model, as `predict` would."""
        body = self._bodies.get(id(spec.layers)) or self._body(spec)
        seconds, n_bytes, flops = body.seconds, body.n_bytes, body.flops
        units, power, root = body.units, self._power, 1 / self._power
        # Groups of one component and type follow each other and overlap as one.
        overlapping = aside = 0.0
        component = type_name = ""
        for g in spec.groups:
            fraction = g.read_fraction
            if not fraction:
                continue
            if g.type != type_name or g.component != component:
                seconds += overlapping**root + aside**root
                overlapping = aside = 0.0
                component, type_name = g.component, g.type
            unit = units.get((component, type_name, fraction))
            if unit is None:
                unit = units[component, type_name, fraction] = self._unit(g, body)
            memory, arithmetic, apart, launch, read, operations = unit
            size, n_params = g.n_bytes, g.n_matmul_params
            overlapping += (size * memory) ** power + (n_params * arithmetic) ** power
            aside += (size * apart) ** power
            seconds += g.n_tensors * launch
            n_bytes += size * read
            flops += n_params * operations
        seconds += overlapping**root + aside**root
        lookup_s, lookup_bytes = self._lookups(spec, body)
        n_bytes += lookup_bytes
        return self._speed(
            spec, seconds + lookup_s, max(n_bytes * self._byte_s, flops * self._flop_s)
        )

    def _lookups(self, spec: ModelSpec, body: _Body) -> tuple[float, float]:
        """Return seconds and bytes of fetching tokens' rows from the tables."""
        sizes: dict[str, int] = {}
        for g in spec.groups:
            if g.n_lookup_bytes:
                sizes[g.type] = sizes.get(g.type, 0) + g.n_lookup_bytes
        seconds, n_bytes = body.per_lookup * len(sizes), 0.0
        for type_name, size in sizes.items():
            moved = float(size * body.n_token)
            per_byte = body.lookups.get(type_name)
            if per_byte is None:
                per_byte = self._per_unit("embedding", type_name, body)[0]
                body.lookups[type_name] = per_byte
            seconds += moved * per_byte
            n_bytes += moved
        return seconds, n_bytes

    def _speed(self, spec: ModelSpec, seconds: float, least_seconds: float) -> Speed:
        n = self._n_tokens
        cap = cap_of(self.question.host, n / least_seconds if least_seconds else math.inf)
        rate = min(n / seconds, cap)
        low, high = self._interval(spec)
        return Speed(rate, rate * low, min(rate * high, cap), n / rate)

    def _interval(self, spec: ModelSpec) -> tuple[float, float]:
        body = self._bodies[id(spec.layers)]
        found = body.intervals.get(spec.confidence)
        if found is None:
            low, high = interval_of(spec, self.question, self._coefficients)
            found = body.intervals[spec.confidence] = (math.exp(low), math.exp(high))
        return found

    def _body(self, spec: ModelSpec) -> _Body:
        q, load = self.question, self.question.workload
        plan = self._plans.of(spec)
        n_token, n_ubatch = _tokens(load)
        shape = shape_of(spec, load)
        works = plan.fixed(n_token, n_ubatch) + plan.at_depth(n_token, load.n_depth, n_ubatch)
        weights = sum(g.read_fraction > 0 for g in plan.groups)
        launch_s = LAUNCH_SECONDS * self._scale("launch", "launches", "", shape)
        body = _Body(spec.layers, plan, shape, n_token, launch_s)
        for work in works[weights:]:
            if work.component == "embedding":
                body.per_lookup = work.n_launches * body.launch_s
                continue
            body.seconds += work.n_launches * body.launch_s
            body.n_bytes += work.bytes
            body.flops += work.flops
        rest = [w for w in works[weights:] if w.component != "embedding"]
        found = [t for w in rest for t in term_pair(w, q.host, q.run, load.phase)]
        scales = [self._scale(t.kind, t.component, t.type, shape) for t in found]
        body.seconds += sum(share.seconds for share in shares_of(found, scales, load.phase))
        self._bodies[id(spec.layers)] = body
        return body

    def _unit(self, group: WeightGroup, body: _Body) -> _Unit:
        n_bytes, flops, launches = self._share(group, body)
        memory, arithmetic, apart = self._per_unit(group.component, group.type, body)
        return (
            n_bytes * memory,
            flops * arithmetic,
            n_bytes * apart,
            launches * body.launch_s,
            n_bytes,
            flops,
        )

    def _share(self, group: WeightGroup, body: _Body) -> tuple[float, float, float]:
        """Return bytes, operations and launches for a byte, a parameter and a tensor."""
        key = (group.component, group.read_fraction)
        found = self._shares.get(key)
        if found is None:
            one = WeightGroup(group.component, "", 1, 1, 1, group.read_fraction, 1)
            plan = replace(body.plan, groups=(one,))
            work = plan.fixed(*_tokens(self.question.workload))[0]
            found = self._shares[key] = (work.bytes, work.flops, work.n_launches)
        return found

    def _per_unit(self, component: str, type_name: str, body: _Body) -> tuple[float, float, float]:
        """Return the fitted seconds of a byte, of an operation, and of a byte's other terms."""
        key = (component, type_name)
        found = self._terms.get(key)
        if found is None:
            found = self._terms[key] = self._some_terms(component, type_name)
        by_byte, by_flop = found
        factors = body.factors.get(component)
        if factors is None:
            of_byte, of_flop = self._kinds[component]
            factors = body.factors[component] = (
                tuple(self._factor(kind, component, body) for kind in of_byte),
                tuple(self._factor(kind, component, body) for kind in of_flop),
            )
        memory, *others = map(mul, by_byte, factors[0])
        return memory, sum(map(mul, by_flop, factors[1])), sum(others)

    def _some_terms(self, component: str, type_name: str) -> _Terms:
        """Return the seconds of a byte and of an operation for some shape, by kind of term."""
        host, run, phase = self.question.host, self.question.run, self.question.workload.phase
        of_byte = tuple(term_pair(Work(component, type_name, 1.0, 0.0, 0.0), host, run, phase))
        of_flop = tuple(term_pair(Work(component, type_name, 0.0, 1.0, 0.0), host, run, phase))
        # Which kinds of terms there are depends on the component alone.
        self._kinds[component] = (
            tuple(t.kind for t in of_byte),
            tuple(t.kind for t in of_flop),
        )
        by_byte, by_flop = (
            tuple(t.seconds * self._scale(t.kind, component, type_name, self._some) for t in each)
            for each in (of_byte, of_flop)
        )
        return by_byte, by_flop

    def _factor(self, kind: TermKind, component: str, body: _Body) -> float:
        """Return what a body's shape does to a term beside some other shape, whatever the type.

        No effect depends on a type and a model's shape at once.
        """
        place = (kind, component)
        some = self._some_scales.get(place)
        if some is None:
            some = self._scale(kind, component, _SOME_TYPE, self._some)
            self._some_scales[place] = some
        return self._scale(kind, component, _SOME_TYPE, body.shape) / some

    def _scale(self, kind: TermKind, component: str, type_name: str, shape: Shape) -> float:
        term = Term(kind, component, type_name, 1.0)
        return scale(self._coefficients.effects, term, self.question, shape)


def _tokens(load: Workload) -> tuple[int, int]:
    """Return the tokens run through the model and the micro-batch."""
    return (1, 1) if load.phase == "decode" else (load.n_prompt, load.n_ubatch)
