"""The shape of every block: attention heads, what is cached, recurrent state, experts.

Which mixer a block has is seen from the tensors it holds. Head counts come from the metadata
and are checked against the tensors, which win: they are what the runtime multiplies.
"""

from dataclasses import dataclass, replace

from tokcast.predictor.block import Block, columns, rows
from tokcast.predictor.keys import Keys
from tokcast.predictor.recurrence import mixer_of
from tokcast.predictor.spec import AttentionKind, Layer
from tokcast.predictor.windows import Windows

_QUERIES = ("attn_q.weight", "attn_qkv.weight", "attn_q_b.weight")
_OUTPUTS = ("attn_output.weight", "attn_output_a.weight", "attn_out.weight", "attn_o.weight")
_STACKS = ("ffn_gate_exps.weight", "ffn_up_exps.weight", "ffn_gate_up_exps.weight")
# Gemma 3n: the first 20 layers own a cache whatever the size (llama.cpp sets it so too).
GEMMA3N_OWN_CACHE = 20


@dataclass(frozen=True, slots=True)
class Heads:
    """Attention heads: how many, and the lengths of one key and one value."""

    n_head: int
    n_head_kv: int
    key_length: int
    value_length: int


class Geometry:
    """Reads one model's blocks; `is_guessed` tells whether heads or routing had to be made up."""

    def __init__(self, architecture: str, keys: Keys, n_block: int) -> None:
        self._architecture = architecture
        self._keys = keys
        self._windows = Windows(architecture, keys, n_block)
        self._first_reusing = first_reusing(architecture, keys, n_block)
        self._embedding_length = keys.count("embedding_length") or 0
        self.is_guessed = False

    def layer(self, index: int, block: Block) -> Layer:
        """Return the shape of one block."""
        mixer, state = mixer_of(block, self._keys, index, self._architecture)
        experts, used = self._experts(index, block)
        plain = Layer(
            index, "none", mixer=mixer, state_elements=state, n_expert=experts, n_expert_used=used
        )
        if not _has_attention(block) or (mixer == "linear" and "ssm_conv1d.weight" not in block):
            return plain
        has_kv = self._first_reusing is None or index < self._first_reusing
        attending = replace(self._attending(plain, block), has_kv=has_kv)
        if "attn_compressor_kv.weight" in block:
            ratio = self._keys.at("attention.compress_ratios", index) or 0
            attending = replace(attending, compress_ratio=ratio)
        return self._indexed(attending, block)

    def _indexed(self, layer: Layer, block: Block) -> Layer:
        """Return a layer with its indexer, if it has one."""
        row, keys = _index_row(block), self._keys
        if not row:
            return layer
        # Blocks of positions are picked, or rows that stand for several.
        n_each = keys.count("attention.indexer.block_size") or layer.compress_ratio
        return replace(
            layer,
            index_length=row,
            n_index_head=keys.count("attention.indexer.head_count") or 0,
            n_picked=n_each * (keys.count("attention.indexer.top_k") or 0),
        )

    def _attending(self, plain: Layer, block: Block) -> Layer:
        latent = self._latent(plain.index, block) or self._shared_row(plain.index, block)
        window = self._windows.at(plain.index)
        kind: AttentionKind = "full" if window is None else "sliding"
        heads = latent or self._heads(plain.index, block, is_sliding=window is not None)
        if latent is not None:
            kind = "mla"
        return replace(
            plain,
            attention=kind,
            n_head=heads.n_head,
            n_head_kv=heads.n_head_kv,
            key_length=heads.key_length,
            value_length=heads.value_length,
            window=window,
        )

    def _latent(self, index: int, block: Block) -> Heads | None:
        """Return MLA's cached row as one key head, if the block caches it."""
        row = rows(block, "attn_kv_a_mqa.weight")
        if not row or "attn_k_b.weight" not in block:
            return None
        n_head = self._keys.at("attention.head_count", index) or 0
        per_head = block.get("attn_k_b.weight")
        if per_head is not None and len(per_head.shape) > 2:
            n_head = per_head.shape[2]
        rank = columns(block, "attn_kv_a_norm.weight")
        rank = rank or self._keys.count("attention.kv_lora_rank") or row
        return Heads(max(n_head, 1), 1, row, min(rank, row))

    def _shared_row(self, index: int, block: Block) -> Heads | None:
        """Return the one row that all heads take as key and as value, if the block has such."""
        row = rows(block, "attn_kv.weight")
        n_head = self._keys.at("attention.head_count", index)
        return Heads(n_head, 1, row, row) if row and n_head else None

    def _heads(self, index: int, block: Block, is_sliding: bool) -> Heads:
        told = self._told_heads(index, block, is_sliding)
        wide = columns(block, "attn_output.weight")
        key_rows, value_rows = rows(block, "attn_k.weight"), rows(block, "attn_v.weight")
        fused = rows(block, "attn_qkv.weight")
        if not told.n_head or not told.key_length:
            self.is_guessed = True
            told = _guessed(block, wide, key_rows or max(fused - wide, 0) // 2)
            self._keys.warn(
                "the header gives no usable attention head count; heads of "
                f"{told.key_length} are assumed from the tensors' shapes"
            )
        return self._reconciled(index, told, key_rows, value_rows)

    def _told_heads(self, index: int, block: Block, is_sliding: bool) -> Heads:
        keys = self._keys
        n_head = keys.at("attention.head_count", index) or 0
        n_head_kv = keys.at("attention.head_count_kv", index)
        if n_head_kv is None:
            n_head_kv = n_head
        suffix = "_swa" if is_sliding else ""
        key_length = keys.count("attention.key_length" + suffix) or keys.count(
            "attention.key_length"
        )
        if not key_length and n_head:
            key_length = self._embedding_length // n_head
        value_length = keys.count("attention.value_length" + suffix) or keys.count(
            "attention.value_length"
        )
        if not value_length:
            wide = columns(block, "attn_output.weight")
            value_length = wide // n_head if n_head and wide else key_length
        return Heads(n_head, n_head_kv, key_length or 0, value_length or 0)

    def _reconciled(self, index: int, told: Heads, key_rows: int, value_rows: int) -> Heads:
        """Return the heads with cached widths as the key and value matrices have them."""
        n_head_kv, key_length, value_length = told.n_head_kv, told.key_length, told.value_length
        if key_rows and n_head_kv * key_length != key_rows:
            self._keys.warn(
                f"blk.{index}.attn_k puts out {key_rows} numbers, the metadata says "
                f"{n_head_kv} heads of {key_length}; the tensor is believed"
            )
            n_head_kv, rest = divmod(key_rows, key_length)
            if rest:
                n_head_kv, key_length = 1, key_rows
        if value_rows and n_head_kv and n_head_kv * value_length != value_rows:
            value_length = value_rows // n_head_kv
        return Heads(told.n_head, n_head_kv, key_length, value_length)

    def _experts(self, index: int, block: Block) -> tuple[int, int]:
        """Return how many experts a block has and how many a token uses; (0, 0) if it has none."""
        n_expert = next((block[s].shape[-1] for s in _STACKS if s in block and block[s].shape), 0)
        if not n_expert and "ffn_up.0.weight" in block:
            n_expert = sum(name.startswith("ffn_up.") for name in block)
        if not n_expert:
            return 0, 0
        used = self._keys.at("expert_used_count", index)
        if used is None or not 0 < used <= n_expert:
            self._keys.warn(
                f"expert_used_count is {used}, expected 1 to {n_expert}; "
                "every expert is taken to be read, which is slower than the truth"
            )
            self.is_guessed = True
            used = n_expert
        return n_expert, used


def _index_row(block: Block) -> int:
    """Return the numbers of an indexer's key, 0 if the block has no indexer."""
    for name in ("indexer.attn_k.weight", "indexer.k_proj.weight"):
        if name in block:
            return rows(block, name)
    return columns(block, "indexer_compressor_norm.weight")


def _has_attention(block: Block) -> bool:
    # A gated delta net has attn_qkv too, but its own output matrix.
    return any(q in block for q in _QUERIES) and any(o in block for o in _OUTPUTS)


def first_reusing(architecture: str, keys: Keys, n_block: int) -> int | None:
    """Return the first block that takes its cache from an earlier one, None without any."""
    shared = keys.count("attention.shared_kv_layers")
    if shared is not None:
        return max(n_block - shared, 0) if shared else None
    return GEMMA3N_OWN_CACHE if architecture == "gemma3n" else None


def _guessed(block: Block, wide: int, key_rows: int) -> Heads:
    """Return heads that fit the widths; bytes and operations do not depend on the split."""
    norm = columns(block, "attn_q_norm.weight")
    candidates = [norm, 128, 64] if norm else [128, 64]
    width = wide or key_rows or 1
    length = next((c for c in candidates if width % c == 0 and key_rows % c == 0), 1)
    return Heads(max(width // length, 1), key_rows // length, length, length)
