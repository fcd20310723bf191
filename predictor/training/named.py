"""Models of the catalogue as shapes that can be trained."""

from tokcast.predictor import catalogue
from tokcast.predictor.errors import InputError
from tokcast.predictor.model import model_spec
from tokcast.predictor.training.shape import TrainShape

# Norms and biases are left out of a shape; more than that is a part that it lacks.
_MOST_APART = 0.01


def from_catalogue(name: str) -> TrainShape:
    """Return the shape of a model of the catalogue.

    Raises InputError for a name that it lacks, or for a model that is no plain Transformer:
    blocks that differ, latent attention, recurrent states.
    """
    header = catalogue.header(name, "F16")
    spec = model_spec(header)
    sizes = {t.name: t.shape for t in header.tensors}
    # Of a mixture, a middle block: the first ones may be dense.
    middle = spec.layers[len(spec.layers) // 2]
    block = f"blk.{middle.index}."
    experts = middle.n_expert > 0
    end = "_exps.weight" if experts else ".weight"
    up, down = (sizes.get(f"{block}ffn_{part}{end}", (0, 0)) for part in ("up", "down"))
    # Some keep the gate in one matrix with what it gates.
    is_gated = f"{block}ffn_gate{end}" in sizes or up[1] == 2 * down[0]
    shape = TrainShape(
        name=spec.name,
        n_layers=len(spec.layers),
        width=spec.embedding_length,
        n_heads=middle.n_head,
        n_kv_heads=middle.n_head_kv,
        head_width=middle.key_length,
        inner=down[0],
        n_vocab=spec.vocab_size,
        is_gated=is_gated,
        is_tied=spec.tied_embeddings,
        n_experts=max(1, middle.n_expert),
        n_used=max(1, middle.n_expert_used),
    )
    apart = abs(shape.n_params / spec.n_params - 1)
    if middle.attention not in ("full", "sliding") or apart > _MOST_APART:
        raise InputError(
            f"{name}: its blocks are no plain Transformer's; expected attention and a feed-forward"
            " in every block, or a config.json of such a model"
        )
    return shape
