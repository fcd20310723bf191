"""How one test is repeated: warm-ups apart, until enough clean samples, within a time limit.

Pure: the clock, the sleep, the gate and the energy counter are arguments.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from tokcast.measurements.gate import Gate, Gates
from tokcast.measurements.record import Sample, Series, Task

Clock = Callable[[], float]
Sleep = Callable[[float], None]
Joules = Callable[[], float | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """When a test has been repeated enough.

    Done after `min_samples` clean samples that add up to `min_seconds`, or `max_samples` clean
    ones; given up `retry_seconds` after the last useful moment: time spent on disturbed samples.
    `pause_seconds` is waited after a disturbed one, for the disturbance to pass.
    """

    n_warmups: int = 1
    min_samples: int = 5
    max_samples: int = 100
    min_seconds: float = 1.0
    retry_seconds: float = 10.0
    pause_seconds: float = 0.05


def no_energy() -> float | None:
    """Return no reading, where there is no counter."""
    return None


def _is_done(clean: list[float], lost_seconds: float, n_samples: int, rule: Rule) -> bool:
    if lost_seconds > rule.retry_seconds and n_samples >= min(rule.min_samples, 3):
        return True
    if len(clean) >= rule.max_samples:
        return True
    return len(clean) >= rule.min_samples and sum(clean) >= rule.min_seconds


def repeat(
    test: Task,
    prepare: Callable[[], None],
    step: Callable[[], None],
    rule: Rule,
    *,
    gate: Gate | None = None,
    joules: Joules = no_energy,
    clock: Clock = time.perf_counter,
    sleep: Sleep = time.sleep,
) -> Series:
    """Return the samples of one test; only `step` is timed.

    A disturbed repetition is kept, marked, and made up for while `retry_seconds` last.
    """
    watch = gate or Gates(())
    warmups = []
    for _ in range(rule.n_warmups):
        prepare()
        start = clock()
        step()
        warmups.append(clock() - start)
    samples: list[Sample] = []
    clean: list[float] = []
    lost = own = 0.0
    while not _is_done(clean, lost, len(samples), rule):
        prepare()
        before_all = clock()
        seen, energy = watch.before(), joules()
        start = clock()
        step()
        end = clock()
        used = joules()
        reading = watch.after(seen, end - start)
        spent = None if energy is None or used is None else used - energy
        samples.append(Sample(end - start, reading.pressure, reading.disturbed, spent))
        own += (start - before_all) + (clock() - end)
        if reading.disturbed:
            lost += end - start + rule.pause_seconds
            sleep(rule.pause_seconds)
        else:
            clean.append(end - start)
    return Series(test, tuple(samples), tuple(warmups), own)
