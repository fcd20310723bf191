"""Deployments: what devices hold and read, and which wall they meet first."""

import math
from typing import Any

import pytest

from tokcast.predictor.catalogue import header
from tokcast.predictor.errors import InputError
from tokcast.predictor.model import model_spec
from tokcast.predictor.roofs.deployment import Deployment, deployment, stored_as
from tokcast.predictor.roofs.mixers import (
    CompressedAttention,
    GroupedAttention,
    LatentAttention,
    Recurrence,
    SparseLatentAttention,
    mixers_of,
)
from tokcast.predictor.roofs.resources import Peaks
from tokcast.predictor.roofs.walls import CAPACITY, LARGEST, crossover, plan, walls
from tokcast.predictor.spec import Layer

H20: dict[str, Any] = {"bytes_per_s": 4e12, "flops_per_s": 296e12, "memory_bytes": 96e9}
V3: dict[str, Any] = {"model": "deepseek-v3", "n_devices": 16, "n_depth": 8192, **H20}


def test_the_latent_cache_by_hand() -> None:
    """576 numbers of 2 bytes in 61 layers for each of 8192 tokens, on every device."""
    for layout in ("tp", "ep"):
        assert plan(layout=layout, **V3).request_bytes == 8192 * 576 * 2 * 61


def test_weights_of_the_layouts_by_hand() -> None:
    """671 billion parameters of a byte, of which 654 in experts; tables and head in two bytes."""
    experts, rest = 653.909e9, 671.026e9 - 653.909e9
    wide = 2 * 0.92668e9 + 0.10645e9
    assert plan(layout="tp", **V3).weights_bytes == pytest.approx(
        (experts + rest + wide) / 16, rel=1e-3
    )
    assert plan(layout="ep", **V3).weights_bytes == pytest.approx(
        experts / 16 + rest + wide, rel=1e-3
    )


def test_on_one_device_the_layouts_are_one() -> None:
    one = {**V3, "n_devices": 1, "memory_bytes": 2e12}
    tp, ep = plan(layout="tp", **one), plan(layout="ep", **one)
    for n in (1, 7, 200):
        a, b = tp.step(n), ep.step(n)
        assert a.memory_bytes == pytest.approx(b.memory_bytes)
        assert a.flops == pytest.approx(b.flops)
        assert (
            (a.network_bytes, a.network_messages)
            == (0, 0)
            == (
                b.network_bytes,
                b.network_messages,
            )
        )
    assert tp.most_requests == pytest.approx(ep.most_requests)


def test_more_requests_never_take_less() -> None:
    for layout in ("tp", "ep"):
        d = plan(layout=layout, message_seconds=1e-5, network_bytes_per_s=50e9, **V3)
        times = [d.floor(n).optimistic for n in range(1, 200)]
        assert times == sorted(times)


def test_work_is_shared_whatever_the_layout() -> None:
    """Operations of all devices are those of one: with as many requests as devices."""
    alone = plan(layout="tp", **{**V3, "n_devices": 1, "memory_bytes": 2e12}).step(16).flops
    for layout in ("tp", "ep"):
        assert 16 * plan(layout=layout, **V3).step(16).flops == pytest.approx(alone, rel=1e-6)


def test_messages_by_hand() -> None:
    assert plan(layout="tp", **V3).step(1).network_messages == 2 * 61
    assert plan(layout="ep", **V3).step(1).network_messages == 2 * 58


def test_sparse_attention_removes_reading_but_not_keeping() -> None:
    dense = plan(layout="tp", **V3)
    sparse = plan(layout="tp", **{**V3, "model": "deepseek-v3.2"})
    kept = sparse.request_bytes / dense.request_bytes
    assert 1 < kept < 1.15
    n = 60
    less = dense.step(n).memory_bytes - sparse.step(n).memory_bytes
    assert less > 0.6 * n * dense.request_bytes
    assert sparse.most_requests < dense.most_requests


LAYER = Layer(0, "full", n_head=32, n_head_kv=8, key_length=128, value_length=128)


def test_grouped_heads_by_hand() -> None:
    (found,) = mixers_of(LAYER, 2.0)
    assert isinstance(found, GroupedAttention)
    assert found.kept(1000) == 1000 * 8 * (128 + 128) * 2
    assert found.flops(1000) == 2 * 1000 * 32 * 256
    assert found.n_shards == 8


def test_a_window_caps_what_is_kept() -> None:
    layer = Layer(0, "sliding", 32, 8, 128, 128, window=512)
    (found,) = mixers_of(layer, 2.0)
    assert found.kept(4096) == found.kept(512) == 512 * 8 * 256 * 2


def test_a_recurrent_layer_keeps_the_same_at_any_depth() -> None:
    layer = Layer(0, "none", mixer="ssm", state_elements=1000)
    (found,) = mixers_of(layer, 2.0)
    assert isinstance(found, Recurrence)
    assert found.kept(1) == found.kept(10**6) == 4000
    assert found.read(5) == 8000
    assert found.flops(5) == 5000


def test_each_kind_of_layer_has_its_declaration() -> None:
    latent = Layer(0, "mla", 128, 1, 576, 512)
    sparse = Layer(0, "mla", 128, 1, 576, 512, index_length=128, n_index_head=64)
    hybrid = Layer(0, "full", 32, 8, 128, 128, mixer="ssm", state_elements=10)
    compressed = Layer(0, "mla", 64, 1, 512, 512, 128, compress_ratio=128)
    (found,) = mixers_of(compressed, 2.0)
    assert isinstance(found, CompressedAttention)
    # The window of 128 rows, and at 4096 positions 32 rows of 128 each.
    assert found.kept(4096) == (128 + 32) * 512 * 2
    assert found.flops(4096) == 2 * (128 + 32) * 64 * 1024
    assert [type(m) for m in mixers_of(latent, 2.0)] == [LatentAttention]
    assert [type(m) for m in mixers_of(sparse, 2.0)] == [SparseLatentAttention]
    assert [type(m) for m in mixers_of(hybrid, 2.0)] == [Recurrence, GroupedAttention]
    (found,) = mixers_of(sparse, 2.0)
    # Beyond 2048 positions only index keys of 128 numbers and a scale are read more.
    assert found.read(8192) - found.read(4096) == 4096 * 132


def _llama(n_devices: int, **changed: Any) -> Deployment:
    spec = stored_as(model_spec(header("llama-3.1-70b", "Q8_0")), "BF16")
    peaks = Peaks(3.35e12, 989e12, 450e9, 1e-6)
    given = {"n_depth": 4096, "memory_bytes": 72e9} | changed
    return deployment(spec, "tp", n_devices, given["n_depth"], peaks, given["memory_bytes"])


def test_grouped_caches_are_divided_by_heads_and_no_further() -> None:
    per_token = 80 * 8 * 256 * 2
    assert _llama(4).request_bytes == per_token * 4096 / 4
    assert _llama(16).request_bytes == per_token * 4096 / 8


def test_the_capacity_wall_is_where_the_memory_ends() -> None:
    d = _llama(4)
    *_, last = walls(d)
    assert last.resource == CAPACITY
    assert d.weights_bytes + last.n_requests * d.request_bytes <= 72e9
    assert d.weights_bytes + (last.n_requests + 1) * d.request_bytes > 72e9


def test_compute_binds_past_the_ridge() -> None:
    """Short requests on a machine of low ridge: weights are read once for ever more tokens."""
    d = _llama(4, n_depth=16, memory_bytes=1e12)
    found = walls(d)
    assert [w.resource for w in found][-1] in (CAPACITY, "compute")
    at = next(w.n_requests for w in found if w.resource == "compute")
    assert d.floor(at).binding == "compute" != d.floor(at - 1).binding
    # 2 operations a parameter and token, 2 bytes a parameter: the ridge, but for the cache.
    assert at == pytest.approx(989e12 / 3.35e12, rel=0.1)


def test_no_wall_without_room() -> None:
    assert walls(_llama(1)) == ()
    assert _llama(1).most_requests == 0


def test_layouts_cross_where_one_gets_full() -> None:
    common = {**V3, "usable": 0.9, "message_seconds": 2e-5}
    tp, ep = plan(layout="tp", **common), plan(layout="ep", **common)
    at = crossover(tp, ep)
    assert at is not None
    assert at <= math.floor(tp.most_requests) + 1
    assert crossover(ep, tp) == 1
    assert at < LARGEST


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"layout": "pp"}, r"^layout 'pp': expected one of tp, ep"),
        ({"layout": "ep", "model": "llama-3.1-8b"}, r"^layout ep: .* has no experts"),
        ({"n_devices": 0}, r"^0 devices; expected 1 or more"),
        ({"n_depth": 0}, r"^requests of 0 tokens"),
        ({"n_depth": 10**6}, r"was trained for \d+; expected at most"),
        ({"bytes_per_s": 0.0}, r"^bytes_per_s is 0; expected a peak above 0"),
        ({"flops_per_s": -1.0}, r"^flops_per_s is -1; expected a peak above 0"),
        ({"memory_bytes": -1.0}, r"^memory_bytes is -1; expected a peak above 0"),
        ({"weights": "INT7"}, r"^weights 'INT7': not a known type"),
        ({"model": "nothing"}, r"nothing"),
    ],
)
def test_what_cannot_be_deployed(changed: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        plan(**{"layout": "tp", **V3, **changed})


def test_a_batch_of_none() -> None:
    with pytest.raises(InputError, match=r"^a batch of 0 requests; expected 1 or more"):
        plan(layout="tp", **V3).step(0)
