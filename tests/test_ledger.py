"""The ledger: worked by hand on tiny models, by published figures on large ones, and its laws."""

import math
from dataclasses import replace

import pytest
import small_models as small
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcast.predictor import catalogue
from tokcast.predictor.cache import capped_sum
from tokcast.predictor.errors import InputError
from tokcast.predictor.ledger import (
    Work,
    Workload,
    compile_decode,
    compile_ledger,
    ledger,
    total,
)
from tokcast.predictor.model import model_spec
from tokcast.predictor.spec import ModelSpec

KINDS = [
    "llama-3.1-8b",
    "qwen3-30b-a3b",
    "gpt-oss-20b",
    "deepseek-v2-lite",
    "qwen3.5-4b",
    "gemma-3n-e2b",
]
SPECS = {name: model_spec(catalogue.header(name, "Q4_K_M")) for name in KINDS}

DENSE = model_spec(small.dense())
MOE = model_spec(
    small.header(
        "qwen3moe",
        small.KEYS | {"expert_count": 4, "expert_used_count": 1},
        *(*small.outside(), *small.attention(), *small.experts()),
    )
)
SLIDING = model_spec(
    small.dense(
        "gemma4",
        n_block=2,
        attention__sliding_window=2,
        attention__sliding_window_pattern=(True, False),
    )
)
LATENT = model_spec(
    small.header("deepseek2", small.KEYS, *small.outside(), *small.latent_attention())
)
HYBRID = model_spec(
    small.header(
        "nemotron_h",
        small.KEYS | {"block_count": 2, "ssm.state_size": 4},
        *(*small.outside(), *small.mamba2(0), *small.attention(1)),
    )
)


def decode(spec: ModelSpec, depth: int, **how: object) -> dict[str, Work]:
    return by_component(ledger(spec, Workload("decode", n_depth=depth, **how)))  # type: ignore[arg-type]


def prefill(spec: ModelSpec, n: int, depth: int, ubatch: int, **how: object) -> dict[str, Work]:
    load = Workload("prefill", n_prompt=n, n_depth=depth, n_ubatch=ubatch, **how)  # type: ignore[arg-type]
    return by_component(ledger(spec, load))


def by_component(works: tuple[Work, ...]) -> dict[str, Work]:
    """Works summed over types."""
    found: dict[str, Work] = {}
    for w in works:
        old = found.get(w.component, Work(w.component, w.type, 0, 0, 0))
        found[w.component] = Work(
            w.component,
            w.type,
            old.bytes + w.bytes,
            old.flops + w.flops,
            old.n_launches + w.n_launches,
        )
    return found


def moved(works: dict[str, Work]) -> dict[str, tuple[float, float]]:
    return {name: (w.bytes, w.flops) for name, w in works.items()}


# --- by hand -----------------------------------------------------------------------------


def test_one_token_of_a_dense_model_at_depth_3() -> None:
    assert moved(decode(DENSE, 3)) == {
        # 64 + 32 + 32 + 64 weights of 2 bytes, two operations each
        "attention": (384, 384),
        # three matrices of 8 x 16
        "ffn": (768, 768),
        "head": (160, 160),
        # three norms of 8, F32
        "norm": (96, 0),
        # one row of 8, F16
        "embedding": (16, 0),
        # a key and a value of 4, F16
        "kv_write": (16, 0),
        # the same for three cached positions and the token's own
        "kv_read": (64, 0),
        # 4 pairs x 2 heads x 2 operations x (4 + 4)
        "attention_op": (0, 128),
        # In and out of the matrices: 16 + 12 + 12 + 16 + 3 * 24 + 18 = 146; norms 2 * 24;
        # two residual additions of three vectors of 8: 48; F32.
        "activations": (4 * (146 + 48 + 48), 0),
    }


def test_a_prompt_of_5_in_batches_of_2_on_depth_3() -> None:
    assert moved(prefill(DENSE, 5, 3, 2)) == {
        # read once for each of three batches, computed for five tokens
        "attention": (3 * 384, 5 * 384),
        "ffn": (3 * 768, 5 * 768),
        # the last token alone
        "head": (160, 160),
        "norm": (3 * 96, 0),
        "embedding": (5 * 16, 0),
        "kv_write": (5 * 16, 0),
        # the batches see 5, 7 and 8 positions
        "kv_read": (20 * 16, 0),
        # the tokens see 4, 5, 6, 7 and 8
        "attention_op": (0, 30 * 32),
        # 146 - 18 of the head, five times; the head's once
        "activations": (4 * (5 * (128 + 48 + 48) + 18), 0),
    }


def test_scores_are_written_and_read_twice_without_flash_attention() -> None:
    with_scores = prefill(DENSE, 5, 3, 2, flash_attention=False)
    # Whole rectangles, masked or not: 2 x 5, 2 x 7 and 1 x 8 for each of two heads, four times F32.
    assert with_scores["scores"].bytes == 4 * 4 * 2 * (10 + 14 + 8)
    assert decode(DENSE, 3, flash_attention=False)["scores"].bytes == 4 * 4 * 2 * 4
    assert "scores" not in prefill(DENSE, 5, 3, 2)


def test_experts_that_a_batch_touches() -> None:
    # 1536 weights of 2 bytes, one of four used
    assert moved(decode(MOE, 0))["experts"] == (3072 / 4, 2 * 1536 / 4)
    # Two tokens touch 1 - (3/4)^2 of the experts, one token a quarter; operations are per token.
    works = moved(prefill(MOE, 5, 0, 2))
    assert works["experts"] == (3072 * (2 * 7 / 16 + 1 / 4), 5 * 2 * 1536 / 4)
    # Shared experts and the router are dense.
    assert works["shared_experts"] == (3 * 768, 5 * 768)
    assert works["router"] == (3 * 128, 5 * 64)


def test_a_sliding_layer_sees_its_window() -> None:
    # Window 2 and a full layer; a position is 16 bytes a layer, a pair 32 operations.
    works = decode(SLIDING, 3)
    assert works["kv_read"].bytes == 16 * (2 + 4)
    assert works["attention_op"].flops == 32 * (2 + 4)
    works = prefill(SLIDING, 5, 3, 2)
    # Batches of 2, 2 and 1 need 3, 3 and 2 positions of the window.
    assert works["kv_read"].bytes == 16 * ((3 + 3 + 2) + 20)
    assert works["attention_op"].flops == 32 * (5 * 2 + 30)
    assert decode(SLIDING, 0)["kv_read"].bytes == 16 * 2


def test_latent_attention_in_absorbed_form() -> None:
    works = moved(decode(LATENT, 3))
    # The cached row is 6 + 2 numbers for both heads; values are part of it.
    assert works["kv_read"] == (4 * 8 * 2, 0)
    assert works["kv_write"] == (8 * 2, 0)
    # 4 pairs x 2 heads x 2 operations x (8 + 6)
    assert works["attention_op"] == (0, 4 * 2 * 2 * 14)
    # 80 + 64 + 36 + 48 + 64 weights
    assert works["attention"] == (2 * 292, 2 * 292)


def test_blocks_that_an_indexer_picks() -> None:
    """MiniMax M3: 3 full layers, 57 that generate from 16 blocks of 128 positions."""
    spec = model_spec(catalogue.header("minimax-m3", "Q4_K_M"))
    n, picked = 65536, 16 * 128
    works = decode(spec, n - 1)
    # 4 heads x 128 keys and values in F16, and one index key of 128.
    assert works["kv_read"].bytes == 3 * 2048 * n + 57 * (2048 * picked + 256 * n)
    attended, indexed = 2 * 64 * 256, 2 * 4 * 128
    assert works["attention_op"].flops == 3 * attended * n + 57 * (attended * picked + indexed * n)
    # A batch reads all rows, and so does a runtime without flash attention, or MLX.
    assert prefill(spec, 2, n - 2, 2)["kv_read"].bytes == (60 * 2048 + 57 * 256) * n
    assert decode(spec, n - 1, flash_attention=False)["kv_read"].bytes == (60 * 2048 + 57 * 256) * n
    mlx = replace(spec, format="mlx")
    assert decode(mlx, n - 1)["kv_read"].bytes == (60 * 2048 + 57 * 256) * n


def test_rows_that_stand_for_several_positions() -> None:
    """DeepSeek V4 Flash: a window of 128 in 43 layers, one row for 4 or 128 positions in 41."""
    spec = model_spec(catalogue.header("deepseek-v4-flash", "Q4_K_M"))
    ratios = [x.compress_ratio for x in spec.layers]
    assert [ratios.count(n) for n in (0, 4, 128)] == [2, 21, 20]
    n, row = 65536, 512 * 2
    works = decode(spec, n - 1)
    # The rows of 4 positions have an index key of 128 numbers beside their 512.
    index = 128 * 2
    assert works["kv_read"].bytes == (
        43 * row * 128 + 21 * (row + index) * n / 4 + 20 * row * n / 128
    )
    # 64 heads multiply 512 as key and as value; of the rows of 4 positions 512 are picked.
    pair = 2 * 64 * 1024
    assert works["attention_op"].flops == (
        43 * pair * 128 + 21 * (pair * 512 + 2 * 64 * 128 * n / 4) + 20 * pair * n / 128
    )
    assert works["kv_write"].bytes == 43 * row + 21 * (row + index) / 4 + 20 * row / 128


def test_recurrent_state_is_read_and_written_once_a_batch() -> None:
    # Width 16 x state 4 and three taps of 24 channels, F32, read and written.
    state = 16 * 4 + 3 * 24
    works = moved(decode(HYBRID, 100))
    assert works["recurrent_state"] == (2 * 4 * state, 5 * state)
    # in (8 x 42) and out (16 x 8) in F16, the convolution (4 x 24) and its 24 biases, two dt
    # biases and a and d in F32
    assert works["recurrent"][0] == 2 * (336 + 128) + 4 * (96 + 24 + 2 + 2 + 2)
    # One of the two layers attends.
    assert works["kv_read"] == (101 * 16, 0)
    assert moved(prefill(HYBRID, 5, 100, 2))["recurrent_state"] == (3 * 8 * state, 5 * 5 * state)


def test_cache_types_are_told_apart() -> None:
    works = ledger(DENSE, Workload("decode", n_depth=3, type_k="Q8_0", type_v="F16"))
    reads = {w.type: w.bytes for w in works if w.component == "kv_read"}
    # 34 bytes hold 32 numbers of Q8_0
    assert reads == {"Q8_0": 4 * 4 * 34 / 32, "F16": 4 * 4 * 2}
    flops = {w.type: w.flops for w in works if w.component == "attention_op"}
    assert flops == {"Q8_0": 64, "F16": 64}


def test_launches_of_one_token() -> None:
    works = decode(DENSE, 0)
    # Matrices and norms by count; two cache writes; two rotations and one fused kernel; one
    # lookup; two additions and one gate.
    expected = {
        "attention": 4,
        "ffn": 3,
        "head": 1,
        "norm": 3,
        "kv_write": 2,
        "attention_op": 3,
        "embedding": 1,
        "activations": 3,
    }
    assert {name: works[name].n_launches for name in expected} == expected
    # Two products, a softmax and two rotations without flash attention.
    plain = decode(DENSE, 0, flash_attention=False)
    assert plain["attention_op"].n_launches + plain["scores"].n_launches == 5
    # Every batch launches everything but the head again.
    three = prefill(DENSE, 5, 0, 2)
    assert three["ffn"].n_launches == 9
    assert three["head"].n_launches == 1


# --- published figures -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "n_bytes"),
    [
        # 2 x 32 layers x 8 heads x 128 x 2 bytes: "128 KiB a token"
        ("llama-3.1-8b", 131072),
        ("llama-3.1-70b", 327680),
        # every head its own keys: 0.5 MiB
        ("llama-2-7b", 524288),
        ("qwen2.5-7b", 57344),
        ("qwen3-30b-a3b", 98304),
        # 61 x (512 + 64) x 2: the 70 kB of the DeepSeek-V3 report
        ("deepseek-v3", 70272),
        # 61 x 128 x (192 + 128) x 2 in files from before the absorbed form
        ("deepseek-v3-kvb", 4997120),
        ("gpt-oss-20b", 49152),
        ("gpt-oss-120b", 73728),
        ("gemma-3-27b", 507904),
        # 12 of 48 layers attend: 2 x 12 x 2 x 256 x 2
        ("qwen3-next-80b-a3b", 24576),
        ("codestral-mamba-7b", 0),
    ],
)
def test_cached_bytes_a_token(name: str, n_bytes: int) -> None:
    spec = model_spec(catalogue.header(name, "F16"))
    written = decode(spec, 0).get("kv_write", Work("kv_write", "F16", 0, 0, 0))
    assert written.bytes == n_bytes


def test_a_short_window_costs_little_at_depth() -> None:
    """gpt-oss: half the layers see 128 positions, so 32768 of depth read a little over half."""
    spec = SPECS["gpt-oss-20b"]
    read = decode(spec, 32767)["kv_read"].bytes
    assert read == 12 * 2 * 8 * 64 * 2 * (32768 + 128)


def test_weights_of_one_token_are_the_active_bytes() -> None:
    spec = SPECS["qwen3-30b-a3b"]
    weights = {g.component for g in spec.groups} - {"embedding"}
    read = sum(w.bytes for w in ledger(spec, Workload("decode")) if w.component in weights)
    # 3.04 B of 30.53 B parameters at the file's 4.87 bits: 1.8 to 2.0 GB
    assert 1.8e9 < read < 2.0e9
    flops = sum(w.flops for w in ledger(spec, Workload("decode")) if w.component in weights)
    assert math.isclose(flops, 2 * spec.active_params, rel_tol=1e-3)


# --- laws --------------------------------------------------------------------------------

NAMES = st.sampled_from(KINDS)
DEPTHS = st.integers(0, 200_000)
LAW = settings(deadline=None, max_examples=60)


def flops_of(spec: ModelSpec, n: int, depth: int, ubatch: int) -> float:
    load = Workload("prefill", n_prompt=n, n_depth=depth, n_ubatch=ubatch)
    return total(ledger(spec, load))[1]


@LAW
@given(NAMES, DEPTHS, st.integers(1, 1000), st.booleans())
def test_one_token_is_a_prompt_of_one(
    name: str, depth: int, ubatch: int, flash_attention: bool
) -> None:
    spec = SPECS[name]
    load = Workload("decode", n_depth=depth, flash_attention=flash_attention)
    prompt = replace(load, phase="prefill", n_prompt=1, n_ubatch=ubatch)
    one, other = moved(by_component(ledger(spec, load))), moved(by_component(ledger(spec, prompt)))
    assert one.keys() == other.keys()
    for component in one:
        assert one[component] == pytest.approx(other[component])


@LAW
@given(NAMES, DEPTHS, st.integers(1, 5000))
def test_depth_only_adds(name: str, depth: int, more: int) -> None:
    near, far = decode(SPECS[name], depth), decode(SPECS[name], depth + more)
    assert near.keys() == far.keys()
    for component, work in near.items():
        assert work.bytes <= far[component].bytes
        assert work.flops <= far[component].flops
    grows = {c for c, w in near.items() if (w.bytes, w.flops) != (far[c].bytes, far[c].flops)}
    assert grows == {"kv_read", "attention_op"}


@LAW
@given(NAMES, st.integers(0, 5000), st.integers(1, 3000), st.integers(1, 3000), st.integers(1, 600))
def test_operations_of_a_prompt_add_up(
    name: str, depth: int, first: int, second: int, ubatch: int
) -> None:
    """Two prompts one after the other cost one prompt and a head more, whatever the batches."""
    spec = SPECS[name]
    parts = flops_of(spec, first, depth, ubatch) + flops_of(spec, second, depth + first, 512)
    head = sum(2 * g.n_matmul_params for g in spec.groups if g.component == "head")
    assert parts - head == pytest.approx(flops_of(spec, first + second, depth, 64))


@LAW
@given(NAMES, st.integers(1, 4000), st.integers(1, 1000), st.integers(1, 1000))
def test_larger_batches_read_weights_less_often(
    name: str, n: int, ubatch: int, larger: int
) -> None:
    spec = SPECS[name]
    small_batches = moved(prefill(spec, n, 0, ubatch))
    large_batches = moved(prefill(spec, n, 0, ubatch + larger))
    for component in ("attention", "ffn", "experts", "recurrent_state"):
        if component in small_batches:
            assert large_batches[component][0] <= small_batches[component][0] * (1 + 1e-12)


@given(st.integers(200_000, 10**9), st.integers(1, 10**6))
def test_a_window_saturates(depth: int, more: int) -> None:
    windowed = replace(
        SLIDING, layers=tuple(replace(x, window=x.window or 4096) for x in SLIDING.layers)
    )
    assert decode(windowed, depth) == decode(windowed, depth + more)


@given(st.integers(0, 50), st.integers(1, 9), st.integers(1, 40), st.integers(1, 90) | st.none())
def test_capped_sum_is_the_sum(first: int, step: int, count: int, cap: int | None) -> None:
    limit = math.inf if cap is None else float(cap)
    terms = [min(first + i * step, limit) for i in range(count)]
    assert capped_sum(first, step, count, limit) == sum(terms)


@LAW
@given(
    st.sampled_from([DENSE, MOE, SLIDING, LATENT, HYBRID]),
    st.integers(0, 12),
    st.integers(1, 30),
    st.integers(1, 7),
)
def test_attention_of_a_prompt_by_counting(
    spec: ModelSpec, depth: int, n: int, ubatch: int
) -> None:
    """The closed forms against loops over batches and tokens."""
    read = flops = 0.0
    for layer in spec.layers:
        if layer.attention == "none":
            continue
        window = layer.window or 10**9
        row = layer.key_length + (0 if layer.attention == "mla" else layer.value_length)
        for start in range(0, n, ubatch):
            u = min(ubatch, n - start)
            seen = {
                position
                for t in range(start, start + u)
                for position in range(max(0, depth + t + 1 - window), depth + t + 1)
            }
            read += 2 * row * layer.n_head_kv * len(seen)
        for t in range(n):
            pairs = min(depth + t + 1, window)
            flops += 2 * layer.n_head * (layer.key_length + layer.value_length) * pairs
    works = prefill(spec, n, depth, ubatch)
    assert works["kv_read"].bytes == read
    assert works["attention_op"].flops == flops


@pytest.mark.parametrize("name", KINDS)
def test_the_compiled_form_is_the_ledger(name: str) -> None:
    compiled = compile_decode(SPECS[name], "Q8_0", "Q4_0", flash_attention=False)
    for depth in (0, 1, 511, 4096, 131072):
        load = Workload(
            "decode", n_depth=depth, type_k="Q8_0", type_v="Q4_0", flash_attention=False
        )
        assert compiled.at(depth) == ledger(SPECS[name], load)
    assert {w.component for w in compiled.at_depth(9)} == {"kv_read", "attention_op", "scores"}


def test_layers_are_added_up_by_window() -> None:
    assert [s.window for s in compile_ledger(SPECS["gpt-oss-20b"]).spans] == [128, math.inf]
    assert len(compile_ledger(SPECS["llama-3.1-8b"]).spans) == 1


# --- formats and bad input ---------------------------------------------------------------


def test_mlx_has_the_same_ledger() -> None:
    gguf = model_spec(catalogue.header("llama-3.1-8b", "BF16"))
    mlx = model_spec(catalogue.header("llama-3.1-8b", "mlx-bf16"))
    for component in ("attention", "ffn", "head"):
        assert decode(mlx, 9)[component].flops == decode(gguf, 9)[component].flops
    cache = {"type_k": "BF16", "type_v": "BF16"}
    assert decode(mlx, 9, **cache)["kv_read"].bytes == decode(gguf, 9)["kv_read"].bytes


def test_a_vocabulary_has_hardly_any_work() -> None:
    empty = model_spec(small.header("llama", small.KEYS))
    assert total(ledger(empty, Workload("decode", n_depth=5))) == (0, 0)


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (Workload("prefill", n_prompt=0), "n_prompt is 0, expected 1 or more"),
        (Workload("decode", n_depth=-1), "n_depth is -1, expected 0 or more"),
        (Workload("prefill", n_ubatch=0), "n_ubatch is 0, expected 1 or more"),
        (Workload("decode", type_k="Q9_Z"), "cache type 'Q9_Z' is not known; expected a ggml type"),
        (Workload("decode", type_v="MLXxG0"), "cache type 'MLXxG0' is not known"),
    ],
)
def test_bad_workloads(load: Workload, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ledger(DENSE, load)
