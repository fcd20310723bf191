"""Repetition under a rule, with a clock that tests turn by hand."""

import pytest

from tokcast.measurements.figures import figure, figures, judge
from tokcast.measurements.gate import Reading
from tokcast.measurements.protocol import Rule, repeat
from tokcast.measurements.record import Sample, Series, Task
from tokcast.predictor.errors import InputError

TG4 = Task("decode", 4)


class Bench:
    """A fake machine: each step takes the next of some times; some are disturbed."""

    def __init__(self, seconds: list[float], disturbed: set[int] | None = None) -> None:
        self.now = 0.0
        self.seconds, self.disturbed = seconds, disturbed or set()
        self.steps = self.prepared = 0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def prepare(self) -> None:
        self.prepared += 1
        self.now += 7.0

    def step(self) -> None:
        self.now += self.seconds[min(self.steps, len(self.seconds) - 1)]
        self.steps += 1

    def before(self) -> object:
        return self.steps

    def after(self, start: object, seconds: float) -> Reading:
        return Reading(0.5, ("other load",)) if start in self.disturbed else Reading(0.0)

    def repeat(self, rule: Rule) -> Series:
        return repeat(
            TG4, self.prepare, self.step, rule, gate=self, clock=self.clock, sleep=self.sleep
        )


def test_warm_ups_are_apart_and_preparing_is_not_timed() -> None:
    bench = Bench([9.0, 2.0, 2.0, 4.0])
    series = bench.repeat(Rule(n_warmups=1, min_samples=3, min_seconds=0.0))
    assert series.warmups == (9.0,)
    assert [s.seconds for s in series.samples] == [2.0, 2.0, 4.0]
    assert bench.prepared == 4
    # llama-bench's mean is that of the rates: (2 + 2 + 1) / 3.
    assert series.tok_per_s == pytest.approx(5 / 3)


def test_repeats_until_both_count_and_time_are_met() -> None:
    series = Bench([0.25]).repeat(Rule(n_warmups=0, min_samples=2, min_seconds=1.0))
    assert len(series.samples) == 4
    series = Bench([3.0]).repeat(Rule(n_warmups=0, min_samples=2, min_seconds=1.0))
    assert len(series.samples) == 2


def test_a_limit_of_samples_ends_very_short_ones() -> None:
    series = Bench([1e-4]).repeat(Rule(n_warmups=0, max_samples=10, min_seconds=1.0))
    assert len(series.samples) == 10


def test_a_disturbed_repetition_is_kept_marked_and_made_up_for() -> None:
    bench = Bench([1.0], disturbed={1})
    rule = Rule(n_warmups=0, min_samples=3, min_seconds=0.0, pause_seconds=0.5)
    series = bench.repeat(rule)
    assert [bool(s.disturbed) for s in series.samples] == [False, True, False, False]
    assert series.samples[1].pressure == 0.5
    assert bench.slept == [0.5]
    assert len(series.clean) == 3


def test_retries_end_with_their_budget_and_the_verdict_says_so() -> None:
    bench = Bench([1.0], disturbed=set(range(100)))
    series = bench.repeat(Rule(n_warmups=0, min_samples=3, retry_seconds=5.0, pause_seconds=0.0))
    assert len(series.samples) == 6
    assert series.clean == ()
    assert len(series.used) == 2
    assert judge([series]).reasons == ("all 6 repetitions were disturbed",)


def test_energy_is_counted_over_the_timed_part() -> None:
    bench = Bench([2.0])
    series = repeat(
        TG4,
        bench.prepare,
        bench.step,
        Rule(n_warmups=0, min_samples=2, min_seconds=0.0),
        joules=lambda: 10.0 * bench.now,
        clock=bench.clock,
        sleep=bench.sleep,
    )
    assert [s.joules for s in series.samples] == [20.0, 20.0]
    assert series.joules_per_token == 5.0


def series(*seconds: float, test: Task = TG4) -> Series:
    return Series(test, tuple(Sample(s) for s in seconds))


def test_verdicts_name_what_is_wrong() -> None:
    assert judge([series(1.0, 1.01, 0.99)]).stable
    assert judge([series(1.0, 1.3, 0.8)]).reasons == ("repetitions spread by 24 %",)
    assert "over 50 % off" in " ".join(judge([series(1.0, 1.0, 1.0, 0.4)]).reasons)
    assert judge([series(5e-4, 5e-4)]).reasons == ("a repetition took under 1 ms",)
    two = judge([series(1.0, 1.0), series(1.3, 1.3)])
    assert two.reasons == ("launches spread by 18 %",)


def test_a_figure_is_the_mean_of_launches() -> None:
    f = figure([series(1.0, 1.0, 1.0), series(2.0)])
    assert f.tok_per_s == 3.0
    assert f.deviation == pytest.approx(2**0.5)
    assert (f.n_launches, f.n_samples) == (2, 4)
    with pytest.raises(InputError, match="no launches"):
        figure([])


def test_a_series_needs_samples() -> None:
    with pytest.raises(InputError, match="expected samples of more than 0 seconds"):
        Series(TG4, ())
    with pytest.raises(InputError, match="expected samples of more than 0 seconds"):
        series(0.0)


def test_tests_are_named_as_llama_bench_names_them() -> None:
    assert Task("prefill", 512).label == "pp512"
    assert Task("decode", 128, 4096).label == "tg128 @ d4096"
    assert figures([]) == ()
