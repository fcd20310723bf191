"""Shared passes: what each request adds, how their time divides, how it is fitted."""

import csv
import io
import json
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from cli_tools import good, refused
from hypothesis import given
from hypothesis import strategies as st

from tokcast.fits.batch_fits import BatchFit, best_for, packaged, read, to_json
from tokcast.fits.batch_scores import compared, held_out, score, token_costs
from tokcast.fits.batch_times import FEWEST, fit_times, folds
from tokcast.measurements import batches as store
from tokcast.measurements.batch_plan import MOST_READ, SHORTEST, Size, round_of
from tokcast.measurements.batches import Conditions, MeasuredBatch
from tokcast.predictor.attribution import BatchTimes, Piece, exact_parts
from tokcast.predictor.batch import FEATURES, BatchShape, Request, batch_shape, blocks
from tokcast.predictor.errors import InputError
from tokcast.predictor.ledger import Workload, ledger
from tokcast.predictor.model import model_spec
from tokcast.predictor.sources import open_model
from tokcast.predictor.spec import ModelSpec


def spec_of(address: str) -> ModelSpec:
    return model_spec(open_model(address, offline=True))


DENSE, WINDOWED, ROUTED = (
    spec_of(f"{name}@Q4_K_M") for name in ("qwen3-0.6b", "gemma-3-270m", "granite-3.1-1b-a400m")
)
# A hundred bytes of weights, ten operations a token, two for its scores; four a pair, eight bytes
# a row.
TOY = BatchShape(100.0, 10.0, 2.0, ((math.inf, 4.0, 8.0),), (), 1000)
TRUE = (
    Piece((0.01, 2e-11, 1e-11, 1e-12, 2e-12, 0.0, 1e-12, 2e-13, 1e-10, 0.0, 0.0)),
    Piece((0.005, 0.0, 0.0, 1e-11, 1.3e-11, 2e-12, 1e-12, 2e-13, 1e-10, 1e-9, 0.0)),
)


def made(shape: BatchShape, n_rounds: int = 6, sigma: float = 0.0) -> tuple[MeasuredBatch, ...]:
    """Return batches whose seconds follow TRUE, with errors of a size on top."""
    true, rng, found = BatchTimes(shape, {"decode": TRUE, "reading": TRUE}), _random(), []
    for i in range(n_rounds):
        planned = round_of(Size(), i, 1)
        for j, batch in enumerate(planned.batches):
            requests = tuple(Request(n, planned.cached[slot]) for slot, n in batch.parts)
            seconds = true.seconds(requests, sum(planned.cached))
            seconds *= float(np.exp(sigma * rng.standard_normal()))
            conditions = Conditions(model="qwen3-0.6b@Q4_K_M", host="x", n_threads=2)
            found.append(
                MeasuredBatch(
                    conditions, "", str(i), f"{i}.{j}", batch.kind, requests,
                    sum(planned.cached), (seconds,), (False,),
                )
            )  # fmt: skip
    return tuple(found)


def _random() -> np.random.Generator:
    return np.random.default_rng(7)


# --- what a request adds


@pytest.mark.parametrize("spec", [DENSE, WINDOWED, ROUTED], ids=["dense", "windowed", "experts"])
@pytest.mark.parametrize(("n_new", "n_past"), [(1, 0), (1, 700), (1, 9000), (40, 0), (64, 900)])
def test_one_request_is_what_the_ledger_has(spec: ModelSpec, n_new: int, n_past: int) -> None:
    shape = batch_shape(spec)
    found = dict(zip(FEATURES, shape.features([Request(n_new, n_past)]), strict=True))
    works = ledger(spec, Workload("prefill", n_prompt=n_new, n_depth=n_past, n_ubatch=n_new))

    def of(name: str, components: set[str]) -> float:
        return sum(getattr(w, name) for w in works if w.component in components)

    attention = {"attention_op", "kv_read", "kv_write", "scores"}
    others = {w.component for w in works} - attention - {"head"}
    assert found["pass"] == 1
    rest = n_new % 4 / n_new
    assert found["rest_flops"] == pytest.approx(of("flops", others) * rest)
    assert found["tile_flops"] == pytest.approx(of("flops", others) * (1 - rest))
    weights = sum(g.n_bytes * g.read_fraction for g in spec.groups)
    assert found["tile_read"] == (weights if n_new >= 4 else 0)
    assert found["rest_read"] == (weights if n_new % 4 else 0)
    assert found["head_flops"] == pytest.approx(of("flops", {"head"}))
    assert found["pair_flops"] == pytest.approx(of("flops", attention))
    assert found["kv_bytes"] == pytest.approx(of("bytes", {"kv_read"}))
    one = ledger(spec, Workload("decode"))
    experts = of("bytes", {"experts"}) - sum(w.bytes for w in one if w.component == "experts")
    assert found["expert_bytes"] == pytest.approx(experts, abs=1)
    assert found["cells"] == n_new * -(-(n_past + n_new) // 256) * 256


@given(lengths=st.lists(st.tuples(st.integers(1, 60), st.integers(0, 3000)), min_size=2))
def test_requests_add_up(lengths: list[tuple[int, int]]) -> None:
    shape = batch_shape(WINDOWED)
    requests = [Request(*pair) for pair in lengths]
    together = shape.features(requests)
    alone = [shape.features([r]) for r in requests]
    for i in (5, 6, 8):
        assert together[i] == pytest.approx(sum(each[i] for each in alone), rel=1e-12)


# --- dividing


def test_shares_by_hand() -> None:
    """Requests of 1 on 9 and of 2 on 0: pairs 10 and 1 + 2, rows 10 and 2, a pass of 6 s.

    Their three tokens fill no tile of four: weights are read for the rest, at its price.
    """
    piece = Piece((4.0, 9.0, 0.02, 9.0, 0.3, 0.5, 0.01, 9.0, 0.001, 0.0, 0.0))
    times = BatchTimes(TOY, {"reading": (piece,)})
    found = times.shares([Request(1, 9), Request(2, 0)])
    first = 3.0 + 10 * 0.3 + 1.0 + 10 * 0.04 + 10 * 0.008
    second = 3.0 + 20 * 0.3 + 1.0 + 3 * 0.04 + 2 * 0.008
    assert found.parts == pytest.approx((first, second))
    assert found.seconds == pytest.approx(first + second)


def test_blocks_of_queries_go_over_the_rows_of_all_that_are_in_them() -> None:
    """60 + 10 + 1 tokens: the second request has queries in both blocks, the others in one."""
    requests = [Request(60, 0), Request(10, 100), Request(1, 5)]
    assert blocks(requests, 71) == [64, 128, 64]
    assert blocks(requests[:1], 60) == [0]
    found = dict(zip(FEATURES, TOY.features(requests), strict=True))
    assert found["block_flops"] == 4.0 * (64 * 60 + 128 * 110 + 64 * 6)


def test_the_largest_function_divides() -> None:
    """With one request the pass costs most, with many their tokens do."""
    flat, steep = Piece((5.0, *[0.0] * 10)), Piece((1.0, 0.0, 0.0, 0.1, 0.1, *[0.0] * 6))
    times = BatchTimes(TOY, {"decode": (flat, steep)})
    assert times.shares([Request(1)] * 2).piece == 0
    many = times.shares([Request(1)] * 10)
    assert (many.piece, many.seconds) == (1, pytest.approx(11.0))


def test_equal_requests_have_equal_shares_and_longer_ones_more() -> None:
    times = BatchTimes(batch_shape(DENSE), {"decode": TRUE})
    same = times.shares([Request(1, 500)] * 4).parts
    assert max(same) - min(same) <= 4 * math.ulp(sum(same))
    rising = times.shares([Request(1, n) for n in (10, 100, 1000, 3000)]).parts
    assert list(rising) == sorted(rising)


SOME = st.floats(1e-9, 1e3)


@given(
    weights=st.lists(st.floats(0, 1e6), min_size=1, max_size=40).filter(lambda w: sum(w) > 1e-3),
    total=st.floats(1e-6, 1e4),
)
def test_parts_add_up_exactly_in_any_order(weights: list[float], total: float) -> None:
    parts = exact_parts(weights, total)
    assert sum(map(Fraction, parts)) == Fraction(total)
    assert math.fsum(parts) == sum(parts) == sum(reversed(parts)) == sum(sorted(parts)) == total
    assert min(parts) >= 0
    for part, weight in zip(parts, weights, strict=True):
        assert part == pytest.approx(total * weight / sum(weights), rel=1e-9, abs=1e-9 * total)


@given(
    lengths=st.lists(st.tuples(st.integers(1, 40), st.integers(0, 4000)), min_size=1, max_size=24),
    measured=st.none() | SOME,
)
def test_shares_add_up_exactly(lengths: list[tuple[int, int]], measured: float | None) -> None:
    times = BatchTimes(batch_shape(ROUTED), {"decode": TRUE, "reading": TRUE})
    requests = [Request(*pair) for pair in lengths]
    found = times.shares(requests, measured_s=measured)
    assert sum(map(Fraction, found.parts)) == Fraction(found.seconds)
    assert found.seconds == (measured or times.seconds(requests))


def test_the_order_of_requests_changes_no_share() -> None:
    times = BatchTimes(batch_shape(WINDOWED), {"reading": TRUE})
    requests = [Request(1, 3000), Request(30, 0), Request(1, 5)]
    shares = dict(zip(requests, times.shares(requests).parts, strict=True))
    for mixed in permutations(requests):
        for request, part in zip(mixed, times.shares(mixed).parts, strict=True):
            assert part == pytest.approx(shares[request], rel=1e-12)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: TOY.features([]), "a batch of no request"),
        (lambda: TOY.features([Request(1, 1000)]), "ends at 1001 tokens, .* a context of 1000"),
        (lambda: Request(0, 5), "a request of 0 new tokens on 5"),
        (lambda: Request(1, -1), "a request of 1 new tokens on -1"),
        (lambda: Piece((1.0,)), "expected 11 of 0 or more"),
        (lambda: Piece((-1.0, *[0.0] * 10)), "expected 11 of 0 or more"),
        (lambda: exact_parts([1.0], 0.0), "expected a time and weights above 0"),
        (lambda: exact_parts([0.0], 1.0), "expected a time and weights above 0"),
        (lambda: BatchTimes(TOY, {}).seconds([Request(1)]), "expected measured batches"),
    ],
)
def test_what_makes_no_sense_is_refused(call: Callable[[], object], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        call()


# --- fitting


def test_known_costs_come_back() -> None:
    shape = batch_shape(DENSE)
    batches = made(shape)
    times = fit_times(batches, shape, n_pieces=2)
    for b in batches:
        assert times.seconds(b.requests, b.n_held) == pytest.approx(b.seconds[0], rel=2e-3)


def test_held_out_errors_are_those_of_the_noise_and_far_below_counting_tokens() -> None:
    """Log errors of 2 %: half of them are below 1.35 %, and the baseline can't see lengths."""
    shape = batch_shape(DENSE)
    for c in compared([held_out(made(shape, 8, sigma=0.02), shape)]):
        assert c.own.p50 < 0.025
        assert c.own.r2 > 0.99
        assert c.baseline.p99 > 2 * c.own.p99
        assert c.baseline.r2 < c.own.r2


def test_a_round_left_out_never_reaches_the_fit() -> None:
    """Round 3 is nonsense; predictions of it are those of a fit that never had it."""
    shape, clean = batch_shape(DENSE), made(batch_shape(DENSE), 5)
    poisoned = tuple(
        replace(b, seconds=(b.seconds[0] * 50,)) if b.round == "3" else b for b in clean
    )
    found = held_out(poisoned, shape)
    without = fit_times([b for b in clean if b.round != "3"], shape)
    for b, own in zip(found.batches, found.own, strict=True):
        if b.round == "3":
            assert own == pytest.approx(without.seconds(b.requests, b.n_held), rel=1e-9)


def test_folds_keep_rounds_whole() -> None:
    batches = made(TOY_LONG, 4)
    for train, test in folds(batches, 3):
        assert not {batches[i].round for i in train} & {batches[i].round for i in test}
    with pytest.raises(InputError, match="1 round of batches: expected 2 or more"):
        next(folds(made(TOY_LONG, 1), 3))


TOY_LONG = replace(TOY, n_context=None)


def test_disturbed_batches_are_not_fitted() -> None:
    shape, batches = batch_shape(DENSE), made(batch_shape(DENSE), 5)
    hit = tuple(
        replace(b, seconds=(b.seconds[0] * 9,), disturbed=(True,)) if b.batch.endswith(".0") else b
        for b in batches
    )
    found = held_out(hit, shape)
    assert found.n_disturbed == 5
    assert all(c.own.p99 < 0.02 for c in compared([found]))


def test_too_few_batches_are_refused() -> None:
    with pytest.raises(InputError, match=f"expected {FEWEST} or more of a phase"):
        fit_times(made(TOY_LONG, 1), TOY_LONG)


def test_the_baseline_is_a_line_through_token_counts() -> None:
    batches = made(TOY_LONG, 1)[:3]
    seconds = np.array([0.5 + 0.25 * b.n_new for b in batches])
    assert token_costs(batches, seconds) == pytest.approx([0.5, 0.25])


def test_a_score_by_hand() -> None:
    s = score("decode", np.array([1.1, 2.0, 2.7]), np.array([1.0, 2.0, 3.0]))
    assert (s.n, s.p50) == (3, pytest.approx(0.1))
    assert s.r2 == pytest.approx(1 - (0.01 + 0.09) / 2)


# --- files


def test_batches_survive_their_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "batches.csv"
    batches = made(TOY_LONG, 2)
    store.write(path, batches[:5])
    store.write(path, batches[5:])
    back = store.read(path)
    assert [replace(b, line=0, seconds=()) for b in back] == [
        replace(b, seconds=()) for b in batches
    ]
    for b, known in zip(back, batches, strict=True):
        assert b.seconds == pytest.approx(known.seconds, rel=1e-5)


def test_fits_survive_their_file(tmp_path: Path) -> None:
    fit = BatchFit(Conditions(model="m", host="h"), 9, {"decode": TRUE})
    path = tmp_path / "fits.json"
    path.write_text(to_json([fit]))
    assert read(path) == (fit,)
    assert best_for([fit], Conditions(model="m")) == fit
    assert best_for([fit], Conditions(model="m", host="other")) is None
    path.write_text("{}")
    with pytest.raises(InputError, match="expected a file that attribute --save made"):
        read(path)


def test_a_plan_holds_what_it_may() -> None:
    size = Size(n_slots=9, n_cells=2000, longest=900)
    for number in range(20):
        planned = round_of(size, number, 3)
        assert planned == round_of(size, number, 3)
        assert sum(planned.cached) + MOST_READ + size.n_slots <= size.n_cells
        assert all(SHORTEST // 2 <= n <= size.longest for n in planned.cached)
        for batch in planned.batches:
            slots = [slot for slot, _ in batch.parts]
            assert len(set(slots)) == len(slots)
            assert sum(n for _, n in batch.parts) <= MOST_READ + size.n_slots
    with pytest.raises(InputError, match="expected 1 or more slots"):
        round_of(Size(n_slots=100, n_cells=500), 0, 0)


def test_the_packaged_fits_are_of_the_packaged_batches() -> None:
    measured = {b.conditions for b in store.packaged()}
    assert {f.conditions for f in packaged()} == measured
    assert len({c.model for c in measured}) >= 2


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("requests\n", "holds no batch"),
        ("a,b\n1,2\n", "header lacks requests"),
        ("model,requests\nm,\n", "line 2: a batch of no request; expected new@cached"),
        ("model,requests\nm,1@x\n", "line 2: request '1@x': expected new@cached"),
        ("model,requests\nm,0@5\n", "line 2: a request of 0 new tokens on 5"),
        ("model,requests,seconds\nm,1@5,-2\n", "line 2: seconds '-2': expected times above 0"),
        ("model,requests,n_held\nm,1@5,x\n", "line 2: n_held 'x': expected a whole number"),
        ("requests\n1@5\n", "line 2: names no model; expected --model"),
        ("model,requests\nqwen3-0.6b@Q4_K_M,1@50000\n", "line 2: a request ends at 50001 tokens"),
        ("model,requests\nqwen3-8b@Q4_K_M,1@5\n", "no fitted batch times of qwen3-8b@Q4_K_M"),
    ],
)
def test_a_bad_file_is_one_line(tmp_path: Path, text: str, line: str) -> None:
    path = tmp_path / "b.csv"
    path.write_text(text)
    assert line in refused("attribute", path, "--offline")


# --- the command


def test_shares_are_printed(tmp_path: Path) -> None:
    path = tmp_path / "b.csv"
    path.write_text("model,requests\nqwen3-0.6b@Q4_K_M,1@2000 1@20\n")
    rows = list(csv.DictReader(io.StringIO(good("attribute", path, "-o", "csv"))))
    seconds = [float(r["seconds"]) for r in rows]
    assert seconds[0] > 2 * seconds[1]
    assert [r["token_share"] for r in rows] == ["0.5", "0.5"]
    assert sum(seconds) == float(rows[0]["batch_seconds"]) == float(rows[0]["predicted_seconds"])
    assert max(map(len, good("attribute", path).splitlines())) <= 80


def test_measured_seconds_are_what_is_divided(tmp_path: Path) -> None:
    """The mean of the faster half of three: of 0.7 and 0.8."""
    path = tmp_path / "b.csv"
    path.write_text("model,requests,seconds\nqwen3-0.6b@Q4_K_M,1@2000 1@20,0.7 0.9 0.8\n")
    (batch,) = json.loads(good("attribute", path, "-o", "json"))["batches"]
    assert sum(r["seconds"] for r in batch["requests"]) == batch["seconds"] == 0.75


def test_own_measurements_are_fitted_saved_and_used(tmp_path: Path) -> None:
    path, fits = tmp_path / "b.csv", tmp_path / "fits.json"
    store.write(path, made(batch_shape(DENSE), 5))
    assert "token count" in good("attribute", path, "--held-out", "--save", fits)
    shown = good("attribute", path, "--batch", "0.3", "--fit", fits)
    assert shown.startswith("Batch 0.3: ")
    assert "batches on x" in shown
    assert "fitted to 110 of these batches" in good("attribute", path)
    assert "expected one of 0.0, 0.1" in refused("attribute", path, "--batch", "7")
