"""When to change the plan: limits apart, outliers aside, no to and fro."""

import random
from collections.abc import Callable, Sequence

import pytest

from tokcast.predictor.errors import InputError
from tokcast.predictor.precision.adapt import Adapter, Decision, Run, Rung
from tokcast.predictor.precision.levels import IN_A_ROW, Level

RUNGS = (Rung("wide", 16), Rung("middle", 8), Rung("narrow", 4.5))
EMPTY = {"wide": 25.0, "middle": 45.0, "narrow": 80.0}
WANTED = 20.0


def expected(plan: str, n_depth: int) -> float:
    """Return speeds that fall with the depth, as a cache's reading adds to the weights'."""
    return 1 / (1 / EMPTY[plan] + n_depth / 4e5)


def follow(adapter: Adapter, runs: Sequence[Callable[[str], Run]]) -> list[Decision]:
    """Return the decisions when the plan decided on is the one run next."""
    return [adapter.follow(make(adapter.plan)) for make in runs]


def steady(factor: float, n_depth: int = 0, n: int = 10) -> list[Callable[[str], Run]]:
    return [lambda p: Run(p, factor * expected(p, n_depth), n_depth) for _ in range(n)]


def changes(decisions: Sequence[Decision]) -> list[str]:
    return [d.plan for d in decisions if d.changed]


def test_a_plan_that_is_fast_enough_is_kept() -> None:
    assert changes(follow(Adapter(RUNGS, expected, WANTED, "wide"), steady(1.0))) == []


def test_a_slow_plan_is_left_after_some_runs_for_the_least_lossy_that_is_fast_enough() -> None:
    decisions = follow(Adapter(RUNGS, expected, WANTED, "wide"), steady(0.7))
    assert [d.changed for d in decisions].index(True) == IN_A_ROW - 1
    assert changes(decisions) == ["middle"]
    assert decisions[2].why == "17.5 tok/s at depth 0: below 20"
    # What was measured of one plan is taken for the others until they are run.
    assert decisions[2].tok_per_s == pytest.approx(0.7 * 45)


def test_a_plan_that_only_just_does_is_no_reason_to_change_to_it() -> None:
    """0.46 of the middle one's speed is 20.7: above the wish, below it by the margin."""
    assert changes(follow(Adapter(RUNGS, expected, WANTED, "wide"), steady(0.46))) == ["narrow"]


def test_where_nothing_is_fast_enough_the_fastest_is_taken() -> None:
    decisions = follow(Adapter(RUNGS, expected, WANTED, "wide"), steady(0.1))
    assert changes(decisions) == ["narrow"]


def test_a_context_that_grows_goes_down_the_plans_and_a_new_one_back_up() -> None:
    adapter = Adapter(RUNGS, expected, WANTED, "wide")
    growing = [lambda p, d=d: Run(p, expected(p, d), d) for d in range(0, 14_000, 200)]
    assert changes(follow(adapter, growing)) == ["middle", "narrow"]
    assert changes(follow(adapter, steady(1.0))) == ["wide"]


def test_noise_about_the_wish_changes_once_at_most() -> None:
    """Medians of seven runs that each are 8 % off, about 20 of 25 tok/s."""
    for seed in range(20):
        rng = random.Random(seed)
        factors = [0.8 * (1 + rng.gauss(0, 0.08)) for _ in range(200)]
        runs = [lambda p, f=f: Run(p, f * expected(p, 0)) for f in factors]
        assert len(changes(follow(Adapter(RUNGS, expected, WANTED, "wide"), runs))) <= 1


def test_one_disturbed_run_counts_for_nothing() -> None:
    adapter = Adapter(RUNGS, expected, WANTED, "wide")
    follow(adapter, steady(1.0))
    for factor in (0.3, 1.0, 0.3, 1.0, 0.3):
        (decision,) = follow(adapter, steady(factor, n=1))
        assert decision.verdict == ("outlier" if factor < 1 else "counted")
        assert not decision.changed
    assert adapter.speed("wide", 0) == pytest.approx(25)


def test_disturbed_runs_in_a_row_are_a_new_level() -> None:
    adapter = Adapter(RUNGS, expected, WANTED, "wide")
    follow(adapter, steady(1.0))
    decisions = follow(adapter, steady(0.6, n=6))
    assert [d.verdict for d in decisions[:IN_A_ROW]] == ["outlier", "outlier", "new level"]
    assert changes(decisions) == ["middle"]


def test_a_level_is_a_median() -> None:
    level = Level()
    for value in (10.0, 11.0, 1000.0):
        assert level.add(value, 10.0) == "counted"
    assert level.factor == pytest.approx(1.1)


def test_outliers_of_activations_forbid_narrow_plans_at_once_and_are_forgotten_slowly() -> None:
    adapter = Adapter(RUNGS, expected, 60.0, "narrow")

    def runs(outlier: float, n: int) -> list[Callable[[str], Run]]:
        return [lambda p: Run(p, expected(p, 0), 0, outlier) for _ in range(n)]

    assert changes(follow(adapter, runs(1.0, 5))) == []
    (severe,) = follow(adapter, runs(2.4, 1))
    assert (severe.plan, severe.changed) == ("wide", True)
    assert severe.why == "activations up to 2.40 x three standard deviations"
    # Just below the limit is not calm yet, however often.
    assert changes(follow(adapter, runs(1.9, 10))) == []
    # Calm ones lift the ban on 8 bits only, as they are moderate; then the speed decides.
    assert changes(follow(adapter, runs(1.6, 8))) == ["middle"]
    assert changes(follow(adapter, runs(1.0, 8))) == ["narrow"]


def test_the_plan_in_use_is_the_first_run_s_unless_told() -> None:
    adapter = Adapter(RUNGS, expected, WANTED)
    assert adapter.follow(Run("narrow", 80.0)).plan == "narrow"


def test_bad_runs_and_wishes() -> None:
    adapter = Adapter(RUNGS, expected, WANTED, "wide")
    with pytest.raises(InputError, match="plan 'other': expected one of wide, middle, narrow"):
        adapter.follow(Run("other", 1.0))
    with pytest.raises(InputError, match="wanted 0 tok/s; expected a speed above 0"):
        Adapter(RUNGS, expected, 0)
    with pytest.raises(InputError, match="no plans to choose from"):
        Adapter((), expected, 1.0)
