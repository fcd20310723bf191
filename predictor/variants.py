"""A catalogue model under all its file types, without a tensor table for each.

Blocks of one kind hold the same tensors, so a model's shapes are listed once a kind, and a file
type's rules are asked once for the tensors that they treat alike. What comes back equals
`model_spec(catalogue.header(name, file_type))`, some hundred times faster.
"""

from collections.abc import Iterable

from tokcast.predictor import mlx_quantize
from tokcast.predictor.catalogue import entry, gguf_file_type
from tokcast.predictor.quantize_counts import Counts
from tokcast.predictor.quantize_rules import FILE_TYPES
from tokcast.predictor.spec import ModelSpec, WeightGroup
from tokcast.predictor.variant_body import Body, Slot, sums_of
from tokcast.predictor.weights import group_of, largest_type


class Variants:
    """The file types of one catalogue model; raises InputError for an unknown name."""

    def __init__(self, name: str) -> None:
        self.entry = entry(name)
        self._bodies: dict[bool, Body] = {}

    def spec(self, file_type: str) -> ModelSpec:
        """Return the model in a file type; raises InputError for an unknown one."""
        mlx = mlx_quantize.parse(file_type)
        body = self._body(mlx is not None)
        if mlx is not None:
            of_mlx = (_mlx_counts(body, slot, mlx) for slot in body.slots)
            return self._spec(body, mlx.name, of_mlx)
        known = gguf_file_type(file_type)
        return self._spec(body, known, _counts(body, known))

    def _body(self, is_mlx: bool) -> Body:
        if is_mlx not in self._bodies:
            self._bodies[is_mlx] = Body(self.entry, is_mlx)
        return self._bodies[is_mlx]

    def _spec(self, body: Body, file_type: str, counts: Iterable[Counts]) -> ModelSpec:
        arch, number = body.arch, FILE_TYPES.get(file_type)
        groups = _groups(body, counts)
        told = body.shown if number is None else {**body.shown, "general.file_type": number[0]}
        return ModelSpec(
            name=self.entry.title,
            architecture=arch.arch,
            format="mlx" if number is None else "gguf",
            file_type=largest_type(groups) if number is None else file_type,
            n_params=sum(g.n_params for g in groups),
            active_params=body.n_active,
            n_bytes=sum(g.n_bytes for g in groups),
            groups=groups,
            layers=body.layers,
            embedding_length=arch.embedding_length,
            vocab_size=arch.vocab_size,
            context_length=arch.context_length or None,
            tied_embeddings=arch.tied_embeddings,
            confidence="known" if body.is_known else "generic",
            source=f"{self.entry.name}@{file_type}",
            metadata=told,
            warnings=body.keys.warnings,
        )


def _counts(body: Body, file_type: str) -> Iterable[Counts]:
    found = body.rules.counts(file_type, body.layout, body.slots)
    if body.experts_as is None:
        return found
    return (
        ((body.experts_as, len(slot.where)),) if slot.is_expert else counts
        for slot, counts in zip(body.slots, found, strict=True)
    )


def _mlx_counts(body: Body, slot: Slot, file_type: mlx_quantize.MlxFileType) -> Counts:
    kept = body.experts_as if slot.is_expert else None
    name = kept or mlx_quantize.type_of(body.arch.arch, slot.tail, slot.shape, file_type)
    return ((name, len(slot.where)),)


def _groups(body: Body, counts: Iterable[Counts]) -> tuple[WeightGroup, ...]:
    sums = sums_of(body.slots, counts)
    groups = dict(body.fixed_groups)
    for key, total in sums.items():
        if key in groups:
            total.add(body.fixed[key])
        groups[key] = group_of(key, total)
    return tuple(groups[key] for key in sorted(groups))
