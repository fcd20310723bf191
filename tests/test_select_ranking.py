"""The order of rows, and the front that nothing beats."""

from dataclasses import replace

import pytest

from tokcast.fits.released import released
from tokcast.hosts.match import find
from tokcast.predictor.errors import InputError
from tokcast.predictor.presets import names, preset
from tokcast.predictor.select.candidate import Candidate
from tokcast.predictor.select.candidates import of_catalogue
from tokcast.predictor.select.ranking import best_of_each, front, goal_of, ppl_ratio, ranked
from tokcast.predictor.select.rows import Judge, Row, Setup
from tokcast.predictor.select.types import GOOD_LOSS, type_loss
from tokcast.predictor.select.wishes import Wishes
from tokcast.predictor.terms import Run

MODELS = ("qwen3-0.6b", "llama-3.1-8b", "qwen3-32b", "llama-3.1-70b")
CANDIDATES = tuple(c for name in MODELS for c in of_catalogue(name, None, ("gguf",)))


def _ratio(row: Row) -> float | None:
    known = type_loss(row.candidate.quant)
    return None if known is None else known.ratio


def _rows(wishes: Wishes, candidates: tuple[Candidate, ...] = CANDIDATES) -> list[Row]:
    host = find("RTX 4090")
    run = Run("llama.cpp", "CUDA")
    judge = Judge(host, host.memory_bytes, lambda _: Setup(host, run, released()), wishes)
    return [judge.row(c) for c in candidates]


def test_what_meets_the_wishes_comes_first() -> None:
    rows = ranked(_rows(Wishes(min_decode=30)), "size")
    feasible = [row.is_feasible for row in rows]
    assert feasible == sorted(feasible, reverse=True)
    assert 0 < sum(feasible) < len(rows)
    # The rest by how far off, the nearest first.
    far = [max(m.factor for m in row.misses) for row in rows if row.misses]
    assert far == sorted(far)


@pytest.mark.parametrize("goal", ["speed", "memory", "quality"])
def test_goals(goal: str) -> None:
    rows = [r for r in ranked(_rows(Wishes()), goal_of(goal)) if r.is_feasible]
    figures = {
        "speed": [-r.decode.tok_per_s for r in rows],
        "memory": [r.need_bytes for r in rows],
        "quality": [_ratio(r) or 99.0 for r in rows],
    }[goal]
    assert figures == sorted(figures)


def test_the_largest_model_whose_files_lose_little_comes_first() -> None:
    rows = ranked(_rows(Wishes(min_decode=10)), "size")
    best = best_of_each(row for row in rows if row.is_feasible)
    assert [row.candidate.model for row in best] == [
        "qwen3-32b",
        "llama-3.1-8b",
        "qwen3-0.6b",
        # A 70B fits 24 GiB only below three bits, which is published to cost it dearly.
        "llama-3.1-70b",
    ]
    for row in best[:3]:
        ratio = _ratio(row)
        assert ratio is not None
        assert ratio <= GOOD_LOSS


def test_of_a_model_the_least_lossy_type_that_is_fast_enough_is_taken() -> None:
    """Whatever was published of other models: more bits where there is room and speed for them."""
    files = tuple(of_catalogue("llama-3.1-8b", None, ("gguf",)))
    rows = ranked(_rows(Wishes(), files), "size")
    assert [r.candidate.quant for r in rows[:4]] == ["Q8_0", "Q6_K", "Q5_K_M", "Q5_1"]
    wanted = {r.candidate.quant: r.decode.tok_per_s for r in rows}
    for quant in ("Q6_K", "Q5_K_M", "Q4_K_M"):
        best = ranked(_rows(Wishes(min_decode=wanted[quant]), files), "size")[0]
        assert best.candidate.quant == quant
    order = [r.candidate.quant for r in rows]
    assert order.index("Q4_K_M") < order.index("Q4_1")
    # 16 bits lose nothing that figures can tell, and come after what does the same in half.
    assert order.index("Q8_0") < order.index("F16")


def test_misses_say_what_and_by_how_much() -> None:
    wishes = Wishes(min_decode=1000, max_ttft_s=1e-6, n_context=10**6, licences=("mit",))
    (row,) = _rows(wishes, tuple(of_catalogue("llama-3.1-70b", "Q8_0", ("gguf",))))
    found = {m.wish: m for m in row.misses}
    assert set(found) == {"memory", "context", "min-decode", "max-ttft", "license"}
    memory = found["memory"]
    assert memory.found == row.need_bytes
    assert memory.limit == 24 * 1024**3
    assert memory.factor == pytest.approx(row.need_bytes / (24 * 1024**3))
    assert found["min-decode"].factor == pytest.approx(1000 / row.decode.tok_per_s)
    assert found["context"].factor == pytest.approx(10**6 / 131072)
    assert found["license"].found is None


def test_a_quality_floor_wants_a_published_figure() -> None:
    rows = _rows(Wishes(largest_loss=1.02))
    for row in rows:
        ratio = ppl_ratio(row)
        missed = "quality-floor" in {m.wish for m in row.misses}
        assert missed == (ratio is None or ratio > 1.02)


def _beats(a: Row, b: Row) -> bool:
    def point(row: Row) -> tuple[float, ...]:
        c = row.candidate
        return (
            c.spec.n_params,
            -(_ratio(row) or 99.0),
            row.decode.tok_per_s,
            -row.need_bytes,
        )

    pairs = list(zip(point(a), point(b), strict=True))
    return all(x >= y for x, y in pairs) and any(x > y for x, y in pairs)


@pytest.mark.parametrize("wishes", [Wishes(), Wishes(min_decode=60), Wishes(n_context=32768)])
def test_the_front_is_what_nothing_beats(wishes: Wishes) -> None:
    rows = _rows(wishes)
    known = [r for r in rows if r.is_feasible and _ratio(r) is not None]
    expected = {
        i
        for i, row in enumerate(rows)
        if row.is_feasible
        and _ratio(row) is not None
        and not any(_beats(other, row) for other in known)
    }
    assert front(rows) == expected
    assert expected


def test_equals_are_both_on_the_front() -> None:
    rows = _rows(Wishes(), tuple(of_catalogue("llama-3.1-8b", "Q4_K_M", ("gguf",))))
    assert front([rows[0], rows[0]]) == {0, 1}


def test_sixteen_bits_lose_nothing() -> None:
    (row,) = _rows(Wishes(), tuple(of_catalogue("qwen3-0.6b", "BF16", ("gguf",))))
    assert ppl_ratio(row) == 1.0


@pytest.mark.parametrize("name", names())
def test_turns_of_a_preset(name: str) -> None:
    p = preset(name)
    wishes = Wishes(preset=p, n_prompt=p.first_input)
    (row,) = _rows(wishes, tuple(of_catalogue("llama-3.1-8b", "Q4_K_M", ("gguf",))))
    assert row.turn is not None
    assert row.turn.first_s > row.ttft_s - row.decode.seconds
    # Generating takes most of a turn: the answer's tokens at the speed in the middle.
    assert row.turn.later_s >= p.output / row.decode.tok_per_s * 0.9
    assert wishes.context % 256 == 0
    assert wishes.context >= p.context_at_end


def test_presets_are_told_with_their_sources() -> None:
    agent = preset("coding-agent")
    assert (agent.first_input, agent.turn_input, agent.output) == (24454, 326, 216)
    assert (agent.turns, agent.context_at_end) == (45, 134736)
    assert agent.reuse == pytest.approx(0.9927)
    assert agent.sources
    assert agent.n_requests == 48658
    with pytest.raises(InputError, match=r"--workload 'gossip': expected one of chat, "):
        preset("gossip")


def test_sorting_by_turn_wants_a_workload() -> None:
    with pytest.raises(InputError, match=r"--sort turn: expected a --workload"):
        ranked(_rows(Wishes()), "turn")
    with pytest.raises(InputError, match=r"--sort 'beauty': expected one of size, speed"):
        goal_of("beauty")


def test_a_licence_is_compared_whatever_its_case() -> None:
    (candidate,) = of_catalogue("qwen3-0.6b", "Q8_0", ("gguf",))
    stated = (replace(candidate, licence="Apache-2.0"),)
    (row,) = _rows(Wishes(licences=("apache-2.0",)), stated)
    assert row.is_feasible
    (row,) = _rows(Wishes(licences=("mit",)), stated)
    assert [(m.wish, m.found) for m in row.misses] == [("license", "Apache-2.0")]
