"""Memory: by hand on tiny models, by llama.cpp's printed buffers on large ones, and its laws."""

import math
from dataclasses import replace

import pytest
import small_models as small
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcast.predictor import catalogue
from tokcast.predictor.errors import InputError
from tokcast.predictor.memory import Setting, largest_context, memory
from tokcast.predictor.model import model_spec

MIB = 2**20
KINDS = ["llama-3.1-8b", "gpt-oss-20b", "deepseek-v2-lite", "qwen3.5-4b", "gemma-3n-e2b"]
SPECS = {name: model_spec(catalogue.header(name, "Q4_K_M")) for name in KINDS}


def test_an_untied_table_stays_in_host_memory() -> None:
    spec = model_spec(small.dense())
    use = memory(spec, 256)
    # 160 bytes of embedding; the rest is 2 x (192 + 384 + 80) + 4 x 24 bytes.
    assert use.weights_host_bytes == 160
    assert use.weights_device_bytes == 2 * (192 + 384 + 80) + 4 * 24
    assert use.weights_bytes == spec.n_bytes


def test_a_tied_table_is_on_both_sides_and_once_in_a_shared_memory() -> None:
    whole = small.dense()
    tied = tuple(t for t in whole.tensors if t.name != "output.weight")
    spec = model_spec(replace(whole, tensors=tied))
    use = memory(spec, 256)
    assert use.weights_host_bytes == 160
    assert use.weights_device_bytes == spec.n_bytes == use.weights_bytes
    rest = use.kv_bytes + use.compute_device_bytes + use.compute_host_bytes
    assert use.unified_bytes == spec.n_bytes + rest


def test_the_cache_is_whole_blocks_of_256() -> None:
    spec = model_spec(small.dense())
    for n_context, cells in ((1, 256), (256, 256), (257, 512)):
        use = memory(spec, n_context)
        assert use.n_context == cells
        # a key and a value of 4 numbers, F16
        assert use.kv_bytes == 16 * cells
    assert memory(spec, 256, Setting("Q8_0", "Q4_0")).kv_bytes == 256 * 4 * (34 + 18) / 32


def test_a_sliding_cache_holds_the_window_and_a_micro_batch() -> None:
    spec = model_spec(
        small.dense(
            "gemma4",
            n_block=2,
            attention__sliding_window=100,
            attention__sliding_window_pattern=(True, False),
        )
    )
    # 100 + 512 positions are padded to 768; the full layer keeps all.
    assert memory(spec, 4096).kv_bytes == 16 * (768 + 4096)
    assert memory(spec, 4096, Setting(n_ubatch=100)).kv_bytes == 16 * (256 + 4096)
    assert memory(spec, 300).kv_bytes == 16 * (512 + 512)
    assert memory(spec, 4096, Setting(swa_full=True)).kv_bytes == 16 * 2 * 4096


def test_layers_that_reuse_a_cache_have_none() -> None:
    spec = SPECS["gemma-3n-e2b"]
    # 16 sliding and 4 full layers of 2 heads x 256, keys and values in F16
    assert memory(spec, 32768).kv_bytes == 2048 * (16 * 1024 + 4 * 32768)


def test_rows_that_stand_for_several_positions() -> None:
    """DeepSeek V4 Flash: 43 windows of 128 + 512 cells, then a row for 4 or for 128 positions."""
    spec = model_spec(catalogue.header("deepseek-v4-flash", "Q4_K_M"))
    windows, n = 43 * 512 * 2 * 768, 2**20
    rows_of_4, rows_of_128 = 21 * (512 + 128) * 2 * n // 4, 20 * 512 * 2 * n // 128
    assert memory(spec, n).kv_bytes == windows + rows_of_4 + rows_of_128
    assert memory(spec, n, Setting("Q8_0")).kv_bytes == memory(spec, n).kv_bytes * 34 / 64


def test_recurrent_state_does_not_grow() -> None:
    spec = SPECS["qwen3.5-4b"]
    expected = 4 * sum(x.state_elements for x in spec.layers)
    assert memory(spec, 256).recurrent_bytes == expected
    assert memory(spec, 262144).recurrent_bytes == expected


def test_blocks_for_further_tokens_are_not_loaded() -> None:
    header = small.dense(n_block=2)
    head = small.tensor("blk.1.nextn.eh_proj.weight", 16, 8)
    spec = model_spec(replace(header, tensors=(*header.tensors, head)))
    assert memory(spec, 256).weights_bytes == model_spec(small.dense()).n_bytes


# Buffers llama.cpp printed in public logs, in MiB: device and host weights, cache, device buffer.
PRINTED = {
    ("llama-3.1-8b", 512, True): (4403.49, 281.81, 64.00, 258.50),
    # without flash attention the scores' 512 MiB decide
    ("llama-3.1-8b", 8192, False): (4403.49, 281.81, 1024.00, 560.00),
    # 12 full layers and 12 of 768 cells; the masks of 131072 positions decide
    ("gpt-oss-20b", 131072, True): (None, None, 3072.00 + 18.00, 398.38),
    ("qwen3-30b-a3b", 65536, True): (None, 166.92, 6144.00, 300.75),
    ("qwen3-1.7b", 1024, True): (None, None, 112.00, 300.75),
}


@pytest.mark.parametrize("case", PRINTED)
def test_buffers_llama_cpp_prints(case: tuple[str, int, bool]) -> None:
    name, n_context, flash_attention = case
    spec = model_spec(catalogue.header(name, "Q4_K_M"))
    use = memory(spec, n_context, Setting(flash_attention=flash_attention))
    found = (
        use.weights_device_bytes,
        use.weights_host_bytes,
        use.kv_bytes,
        use.compute_device_bytes,
    )
    for n_bytes, printed in zip(found, PRINTED[case], strict=True):
        if printed is not None:
            assert round(n_bytes / MIB, 2) == printed


LAW = settings(deadline=None, max_examples=60)
NAMES = st.sampled_from(KINDS)
CONTEXTS = st.integers(1, 300_000)


@LAW
@given(NAMES, CONTEXTS, st.integers(0, 50_000), st.booleans(), st.booleans())
def test_a_longer_context_never_needs_less(
    name: str, n_context: int, more: int, flash_attention: bool, swa_full: bool
) -> None:
    how = Setting(flash_attention=flash_attention, swa_full=swa_full)
    near, far = (memory(SPECS[name], n, how) for n in (n_context, n_context + more))
    assert near.device_bytes <= far.device_bytes
    assert near.unified_bytes <= far.unified_bytes


@LAW
@given(NAMES, st.floats(0, 60e9), st.booleans(), st.sampled_from(["F16", "Q8_0"]))
def test_the_largest_context_fits_and_the_next_does_not(
    name: str, available: float, is_unified: bool, type_k: str
) -> None:
    spec = SPECS[name]
    n = largest_context(spec, available, Setting(type_k), is_unified=is_unified)

    def need(n_context: int) -> float:
        use = memory(spec, n_context, Setting(type_k=type_k))
        return use.unified_bytes if is_unified else use.device_bytes

    assert spec.context_length is not None
    assert 0 <= n <= spec.context_length
    assert n == 0 or need(n) <= available
    assert n == spec.context_length or need(n + 256) > available


def test_the_largest_context_may_be_no_whole_block() -> None:
    spec = replace(model_spec(small.dense()), context_length=1000)
    assert largest_context(spec, math.inf) == 1000
    assert largest_context(spec, 0) == 0


@pytest.mark.parametrize(
    ("n_context", "n_ubatch", "message"),
    [
        (0, 512, "n_context is 0, expected 1 to"),
        (2**40, 512, "n_context is 1099511627776, expected 1 to"),
        (512, 0, "n_ubatch is 0, expected 1 to"),
    ],
)
def test_lengths_that_make_no_sense(n_context: int, n_ubatch: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        memory(SPECS["llama-3.1-8b"], n_context, Setting(n_ubatch=n_ubatch))


def test_an_unknown_cache_type_is_named() -> None:
    with pytest.raises(InputError, match="cache type 'F17' is not known"):
        memory(SPECS["llama-3.1-8b"], 256, Setting(type_k="F17"))
