"""The paper's rooflines with factors by type, and the order of types by speed."""

from dataclasses import replace

import numpy as np
import pytest
from cohort import small

from tokcast.fits.observations import Observation
from tokcast.fits.paper import (
    Rung,
    decode_seconds,
    host_splits,
    ladder,
    order_changes,
    paper_scores,
    prefill_seconds,
    residuals,
)
from tokcast.fits.splits import folds


def at_efficiency(rows: tuple[Observation, ...], active: bool) -> tuple[Observation, ...]:
    """Return rows as fast as a share of the roofline that their type alone decides."""
    share = {t: 0.3 + 0.05 * i for i, t in enumerate(sorted({o.file_type for o in rows}))}
    seconds = decode_seconds if rows[0].phase == "decode" else prefill_seconds
    return tuple(replace(o, tok_per_s=share[o.file_type] / seconds(o, active)) for o in rows)


@pytest.mark.parametrize("phase", ["decode", "prefill"])
@pytest.mark.parametrize("active", [False, True])
def test_factors_by_type_are_recovered(phase: str, active: bool) -> None:
    rows = at_efficiency(small(phase), active)
    types = np.array([o.file_type for o in rows])
    splits = list(folds([str(i) for i in range(len(rows))], 4))
    found = residuals(rows, splits, active)
    for train, test in splits:
        seen = np.isin(types[test], types[train])
        assert found[test][seen] == pytest.approx(0, abs=1e-9)


def test_a_dense_models_parameters_are_all_active() -> None:
    o = next(o for o in small() if o.model_id == "llama-3.1-8b")
    assert o.spec.n_params == pytest.approx(8.03e9, rel=0.01)
    assert decode_seconds(o, active=False) == o.spec.n_bytes / o.host.bytes_per_s
    # The table of token embeddings is looked up, not multiplied.
    assert 0.9 < decode_seconds(o, active=True) / decode_seconds(o, active=False) <= 1
    peak = o.host.matrix_fp16_flops_per_s
    assert peak
    assert prefill_seconds(o, active=False) == pytest.approx(2 * o.spec.n_params / peak)


def test_reference_and_held_out_models_of_a_host_are_apart() -> None:
    rows = small()
    found = list(host_splits(rows))
    assert found
    for train, test in found:
        assert {rows[i].host.name for i in train} == {rows[i].host.name for i in test}
        assert not {rows[i].model_id for i in train} & {rows[i].model_id for i in test}


def test_both_protocols_are_scored_with_ours_beside() -> None:
    rows = small()
    splits = list(folds([o.host.name for o in rows], 5))
    found = paper_scores(rows, splits, np.zeros(len(rows)))
    assert set(found["host left out"]) == {
        "total parameters, factor per type",
        "active parameters, factor per type",
        "tokcast",
    }
    assert found["host left out"]["tokcast"].mape == 0
    assert found["host's own reference models"]
    prefill = small("prefill")
    chips = list(folds([o.host.name for o in prefill], 5))
    p2 = paper_scores(prefill, chips, np.zeros(len(prefill)))["host left out"]
    assert "P2: active parameters, factor per type" in p2


def test_a_ladder_compares_like_with_like() -> None:
    base = next(o for o in small() if o.file_type == "Q4_K_M")
    others = [
        replace(base, file_type="Q8_0", tok_per_s=base.tok_per_s * 0.6),
        replace(base, file_type="Q8_0", tok_per_s=base.tok_per_s * 0.6),
        replace(base, file_type="IQ2_XS", model_id="another", tok_per_s=1e6),
    ]
    far = [replace(o, host=replace(o.host, name="Another")) for o in (base, *others)]
    rungs = ladder([base, *others, *far])
    found = {r.file_type: (r.factor, r.n_hosts, r.n_pairs) for r in rungs}
    assert found == {"Q4_K_M": (1.0, 2, 2), "Q8_0": (pytest.approx(0.6), 2, 2)}


def rung(stack: str, name: str, factor: float) -> Rung:
    return Rung(stack, name, 2, 2, factor, 1.0)


def test_changes_of_order_are_counted() -> None:
    same = [rung(s, t, f) for s in "ab" for t, f in (("x", 1.0), ("y", 2.0), ("z", 3.0))]
    assert order_changes(same) == (0, 3)
    other = [rung("a", "x", 1.0), rung("a", "y", 2.0), rung("b", "x", 2.0), rung("b", "y", 1.0)]
    assert order_changes(other) == (1, 1)
    assert order_changes(other[:2]) == (0, 0)
