"""Memory levels, emulated FP64 and stages: hand-worked cases, bounds, and damaged files."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcast.predictor.errors import InputError
from tokcast.predictor.roofs.emulation import (
    Emulator,
    Kernel,
    emulated,
    native_seconds,
    needed_ops,
    speedup,
    stored,
    study,
    threshold,
)
from tokcast.predictor.roofs.flash import FlashAttention, mappings_of
from tokcast.predictor.roofs.levels import (
    Level,
    Machine,
    comparison,
    standing,
    stop_at,
)
from tokcast.predictor.roofs.mapping import Traffic
from tokcast.predictor.roofs.stages import Change, Program, Stage, program
from tokcast.predictor.roofs.tables import shipped

# --- levels


MACHINE = Machine("m", 1e12, (Level("far", 1e10), Level("near", 1e11)))


def test_ridges_by_hand() -> None:
    assert [MACHINE.ridge(level) for level in MACHINE.levels] == [100, 10]


@pytest.mark.parametrize(
    ("far", "near", "rate", "binding"),
    [(0.02, 0.05, 0.5e12, "far"), (0.005, 0.2, 0.5e12, "near"), (0.005, 0.05, 1e12, "compute")],
)
def test_the_narrowest_level_binds(far: float, near: float, rate: float, binding: str) -> None:
    """Bytes an operation; 0.01 and 0.1 are the ridges."""
    found = standing(MACHINE, Traffic("x", 1e9, {"far": far * 1e9, "near": near * 1e9}))
    assert found.flops_per_s == pytest.approx(rate)
    assert found.binding == binding
    assert found.is_cleared == (binding == "compute")


def test_the_rule_stops_at_the_first_that_clears() -> None:
    chain = [Traffic(str(n), 1e9, {"far": n * 1e6}) for n in (50, 20, 9, 1)]
    chosen = stop_at([standing(MACHINE, x) for x in chain])
    assert chosen is not None
    assert chosen.mapping.name == "9"
    assert stop_at([standing(MACHINE, chain[0])]) is None


def test_attention_by_hand() -> None:
    """64 tokens of 8 numbers of 2 bytes, one block of queries."""
    separate, two, one, fused = mappings_of(FlashAttention(64, 8, 2, 64))
    scores, rows = 64 * 64 * 2, 64 * 8 * 2
    assert {x.flops for x in (separate, two, one, fused)} == {4 * 64 * 64 * 8}
    assert separate.n_bytes["DRAM"] == 4 * scores + 4 * rows
    assert two.n_bytes["DRAM"] == 4 * rows
    assert [x.n_bytes["MemTile"] for x in (two, one, fused)] == [
        4 * scores + 4 * rows,
        2 * scores + 4 * rows,
        4 * rows,
    ]


@given(st.integers(16, 4096), st.integers(16, 256))
def test_fusing_never_moves_more(n_tokens: int, head: int) -> None:
    found = mappings_of(FlashAttention(n_tokens, head, 2, 64))
    for level in ("DRAM", "MemTile", "tile"):
        moved = [x.n_bytes[level] for x in found]
        assert moved == sorted(moved, reverse=True)


def test_the_published_conclusion_on_two_npus() -> None:
    c = comparison(shipped("xdna"))
    first, second = ([standing(m, x) for x in c.mappings] for m in c.machines)
    streamed, fused = stop_at(first), stop_at(second)
    assert streamed is not None
    assert fused is not None
    assert (streamed.mapping.name, fused.mapping.name) == ("one hop", "fused")
    older, newer = c.machines
    for a, b in zip(older.levels, newer.levels, strict=True):
        assert older.ridge(a) < newer.ridge(b)


# --- emulation

EMULATOR = Emulator(1e12, 1e15, 1e13, 1e13, n_moduli=10, products=10, ops_per_residue=4)


def test_four_terms_by_hand() -> None:
    k = Kernel("k", flops=1e12, n_bytes=1e12, operand_bytes=8e11, n_outputs=1e10)
    found = emulated(replace(EMULATOR, ops_per_output=50), k)
    assert found.by_resource == pytest.approx(
        {"products": 0.01, "memory": 0.1, "reconstruction": 0.05, "deconstruction": 0.4}
    )
    assert native_seconds(EMULATOR, k) == 1
    assert speedup(EMULATOR, k) == pytest.approx(2.5)


def test_at_the_threshold_emulation_is_as_fast_as_native() -> None:
    limit = EMULATOR.threshold
    assert limit == pytest.approx(4 * 10 * 1e12 / (8 * 1e13))
    k = Kernel("k", flops=limit * 8e6, n_bytes=1.0, operand_bytes=8e6)
    assert speedup(EMULATOR, k) == pytest.approx(1.0)


@given(st.floats(0.01, 100), st.floats(1, 1e6))
def test_below_it_no_matrix_unit_helps(share: float, faster: float) -> None:
    quick = replace(EMULATOR, tensor_flops_per_s=1e15 * faster)
    k = Kernel("k", flops=share * quick.threshold * 8e6, n_bytes=8e6, operand_bytes=8e6)
    assert (
        speedup(quick, k) <= max(share, 1e-12) * (1 + 1e-9)
        or native_seconds(quick, k) > k.flops / quick.fp64_flops_per_s
    )


def test_the_operations_that_would_match() -> None:
    """At c_q = needed_ops taking apart takes exactly the native time."""
    k = Kernel("k", flops=2e9, n_bytes=8e9, operand_bytes=8e9)
    enough = replace(EMULATOR, ops_per_residue=needed_ops(EMULATOR, k))
    assert emulated(enough, k).by_resource["deconstruction"] == pytest.approx(
        native_seconds(enough, k)
    )


def test_stored_residues_move_the_cost_to_memory() -> None:
    """10 residues of a byte in place of 8 bytes: a quarter more, and nothing to take apart."""
    k = Kernel("k", flops=1.0, n_bytes=8e9, operand_bytes=8e9)
    found = stored(EMULATOR, k).by_resource
    assert found["deconstruction"] == 0
    assert found["memory"] == pytest.approx(10e9 / 1e13)


@pytest.mark.parametrize("value", [0.0, -2.0])
def test_the_threshold_needs_positive_peaks(value: float) -> None:
    for i, name in enumerate(("ops_per_residue", "n_moduli", "fp64_flops_per_s", "int_ops_per_s")):
        given_ = [1.0] * 4
        given_[i] = value
        with pytest.raises(InputError, match=rf"^{name} is .*; expected a peak above 0"):
            threshold(*given_)


# --- stages

TWO = Program(
    "p",
    {"bytes": 1e9, "ops": 1e9},
    (Stage("a", {"bytes": 4e9, "ops": 1e9}), Stage("b", {"ops": 2e9})),
    (Change("half", ("a",), {"bytes": 0.5}), Change("free", ("a",), {"bytes": 0.0})),
    seconds=12.0,
)


def test_stages_by_hand() -> None:
    a, b = TWO.stages
    assert TWO.floor_seconds == 6
    assert a.floor(TWO.peaks).binding == "bytes"
    assert a.least_gain(TWO.peaks) == 4
    assert math.isinf(b.least_gain(TWO.peaks))
    half, free = TWO.changes
    assert TWO.gain((half,)) == pytest.approx(6 / 4)
    # Without its bytes the stage is left with its operations.
    assert TWO.gain((free,)) == pytest.approx(6 / 3)
    assert TWO.most_gain((half,)) == pytest.approx(12 / 4)
    assert TWO.gain(()) == 1


@given(st.floats(0, 1), st.floats(0, 1))
def test_changes_that_only_lower_needs_never_slow(x: float, y: float) -> None:
    one = Change("x", ("a",), {"bytes": x})
    two = Change("y", ("a", "b"), {"ops": y})
    assert TWO.gain((one, two)) >= TWO.gain((one,)) * (1 - 1e-12) >= 1 - 1e-9
    assert TWO.gain((one, two)) == pytest.approx(TWO.gain((two, one)))


def test_faster_than_the_floor_is_said() -> None:
    assert TWO.below_floor == ()
    quick = Stage("a", {"bytes": 4e9}, seconds=3.9)
    assert replace(TWO, stages=(quick,), seconds=3.9).below_floor == ("a", "the whole")


def test_the_renderer_is_bound_as_published() -> None:
    """Memory in front, instructions in the rasterizer, and floors below the published frame."""
    p = program(shipped("splatting"))
    bound = {s.name: s.floor(p.peaks).binding for s in p.stages}
    assert bound.pop("rasterize") == "instructions"
    assert set(bound.values()) == {"bytes"}
    assert p.seconds == pytest.approx(1 / 61, rel=1e-3)
    assert p.floor_seconds < 1 / 61


STAGES = """
title = "t"
[peaks]
bytes = 1e9
[[stage]]
name = "a"
needs = { bytes = 1 }
"""
LEVELS = """
title = "t"
[[machine]]
name = "m"
flops_per_s = 1e12
[[machine.level]]
name = "far"
bytes_per_s = 1e9
[[mapping]]
name = "x"
flops = 1
bytes = { far = 1 }
"""
KERNELS = """
title = "t"
[machine]
fp64_flops_per_s = 1e12
tensor_flops_per_s = 1e15
int_ops_per_s = 1e13
bytes_per_s = 1e13
n_moduli = 10
products = 10
ops_per_residue = 4
[[kernel]]
name = "k"
flops = 1
n_bytes = 8
operand_bytes = 8
"""
TAIL = LEVELS[LEVELS.index("[[mapping]]") :]
READ = {"stages": (program, STAGES), "levels": (comparison, LEVELS), "kernels": (study, KERNELS)}

DAMAGED = [
    ("stages", "bytes = 1e9", "bytes = 0", r": peaks\.bytes is 0; expected a number above 0"),
    ("stages", "bytes = 1e9", "bytes = -1", r": peaks\.bytes is -1; expected a number above 0"),
    ("stages", "bytes = 1e9", "bytes = nan", r": peaks\.bytes is not finite, or beyond"),
    ("stages", "bytes = 1e9", "bytes = 1" + 400 * "0", r": peaks\.bytes is not finite, or beyond"),
    ("stages", 'title = "t"', 'title = "t"\nchange = 3', r": no \[\[change\]\]; expected one or"),
    ("kernels", "[machine]", "machine = 3\n[other]", r": unknown key 'other'"),
    ("stages", "bytes = 1e9", "bytes = 'x'", r": peaks\.bytes is 'x'; expected a number"),
    ("stages", "[peaks]", "[peeks]", r": unknown key 'peeks'; expected title"),
    ("stages", "bytes = 1 ", "bytes = 0 ", r"stage a: needs nothing of any resource"),
    ("stages", "bytes = 1 ", "bytes = -1 ", r"needs\.bytes is -1; expected a number of 0 or more"),
    ("stages", "bytes = 1 ", "flops = 1 ", r"needs\.flops: no such peak; expected one of bytes"),
    ("stages", "[[stage]]", "[[change]]", r": no \[\[stage\]\]; expected one or more"),
    ("stages", 'title = "t"', "", r": title is None; expected text"),
    ("stages", "title", "= 3", r": not TOML: "),
    ("levels", "flops_per_s = 1e12", "flops_per_s = 0", r"machine m: flops_per_s is 0; expected"),
    ("levels", "bytes_per_s = 1e9", "bytes_per_s = -1", r"level far: bytes_per_s is -1; expected"),
    ("levels", "{ far = 1 }", "{ near = 1 }", r"unknown key 'near'; expected far"),
    ("levels", "[[mapping]]", "[attention]\nn_tokens = 1\n[[mapping]]", r"both attention and mapp"),
    (
        "levels",
        TAIL,
        "[attention]\nn_tokens = 1",
        r"head_length is",
    ),
    (
        "levels",
        TAIL,
        "[attention]\nn_tokens = 8\nhead_length = 8\nnumber_bytes = 2\nn_query = 8",
        r"level far: attention's traffic is known across DRAM, MemTile, tile alone",
    ),
    ("kernels", "int_ops_per_s = 1e13", "int_ops_per_s = 0", r"int_ops_per_s is 0; expected a num"),
    ("kernels", "n_moduli = 10", "", r"machine: n_moduli is None; expected a number above 0"),
    ("kernels", "operand_bytes = 8", "operand_bytes = 0", r"operand_bytes is 0; expected"),
    ("kernels", "flops = 1", "flop = 1", r"kernel k: unknown key 'flop'"),
]


@pytest.mark.parametrize(("kind", "old", "new", "expected"), DAMAGED)
def test_a_damaged_description(
    kind: str, old: str, new: str, expected: str, tmp_path: Path
) -> None:
    reader, text = READ[kind]
    file = tmp_path / "x.toml"
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError, match=expected) as caught:
        reader(file)
    assert "\n" not in str(caught.value)
    file.write_text(text, encoding="utf-8")
    reader(file)


def test_a_table_that_is_a_number(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text('title = "t"\nmachine = 3\n' + KERNELS[KERNELS.index("[[kernel]]") :])
    with pytest.raises(InputError, match=r": machine is 3; expected a \[machine\] table"):
        study(file)


@pytest.mark.parametrize("kind", READ)
def test_a_file_that_is_not_there(kind: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"No such file or directory; expected a TOML file"):
        READ[kind][0](tmp_path / "none.toml")


CHANGED = STAGES + '[[change]]\nname = "c"\nstages = ["a"]\nscale = { bytes = 0.5 }\n'


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('["a"]', '["b"]', r"change c: stages is \['b'\]; expected some of a"),
        ("0.5", "-0.5", r"change c: scale\.bytes is -0\.5; expected a number of 0 or more"),
        ("bytes = 0.5", "ops = 0.5", r"scale\.ops: no such peak; expected one of bytes"),
    ],
)
def test_a_damaged_change(old: str, new: str, expected: str, tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text(CHANGED.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError, match=expected):
        program(file)
    file.write_text(STAGES + STAGES[STAGES.index("[[stage]]") :], encoding="utf-8")
    with pytest.raises(InputError, match=r"two stages of one name"):
        program(file)
