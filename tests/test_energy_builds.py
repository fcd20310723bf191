"""Builds behind rows, knees behind limits, prompts in notes: what sources say beside figures."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tokcast.fits.energy import energy_design, fit_energy, is_free, predict_log_share
from tokcast.fits.energy_calibrated import calibrated_seconds, installations, key_of
from tokcast.fits.energy_knees import KNEE_TO_TOP, knee_readings
from tokcast.fits.energy_observations import (
    EnergyObservation,
    energy_observation,
    observe_energy,
)
from tokcast.fits.released import released
from tokcast.measurements.builds import build_of, installation_of
from tokcast.measurements.energy_rows import EnergyRow, of_measurement, packaged_energy
from tokcast.measurements.schema import packaged

STRIX = "lhl/strix-halo-testing@5ee14b5b0e:llm-bench/llama-2-7b.Q4_0/results.jsonl"


@pytest.fixture(scope="module")
def board() -> tuple[EnergyObservation, ...]:
    return tuple(o for o in observe_energy(packaged_energy())[0] if o.kind == "gpu_board")


@pytest.fixture(scope="module")
def strix() -> list[EnergyRow]:
    return [of_measurement(m) for m in packaged() if m.power_w is not None and "strix" in m.source]


@pytest.mark.parametrize(
    ("source", "date", "build"),
    [
        (STRIX, "2025-08-04T10:37:58Z", "hip"),
        (STRIX, "2025-08-04T11:31:04Z", "hip+hipblaslt"),
        (STRIX, "2025-08-04T13:10:08Z", "rocwmma"),
        (STRIX, "2025-08-04T14:35:24Z", "rocwmma+hipblaslt"),
        (STRIX, "2020-01-01T00:00:00Z", None),
        (STRIX, "", None),
        (STRIX.replace("llama-2-7b.Q4_0", "unheard-of"), "2025-08-04T10:37:58Z", None),
        ("somebody/else@0:a/b.jsonl", "2025-08-04T10:37:58Z", None),
    ],
)
def test_the_build_of_a_row_is_what_its_source_says(
    source: str, date: str, build: str | None
) -> None:
    """As printed in results.jsonl beside each of these times (`build`, `hipblaslt`)."""
    assert build_of(source, date) == build


def test_every_row_of_the_sweeps_has_its_build(strix: list[EnergyRow]) -> None:
    swept = [r for r in strix if r.source.endswith("results.jsonl")]
    assert len(swept) > 4000
    found = Counter(build_of(r.source, r.date) for r in swept)
    assert None not in found
    # The backend of the row and of the build are one.
    for r in swept:
        build = build_of(r.source, r.date) or ""
        assert build.startswith("vulkan") == (r.backend == "Vulkan")


def test_builds_are_what_sets_prefill_apart(strix: list[EnergyRow]) -> None:
    """One model, prompt and setting at one backend: 289 to 778 tok/s by the build alone."""
    rows = [
        r
        for r in strix
        if "llama-2-7b.Q4_0" in r.source
        and (r.n_prompt, r.flash_attn, r.backend) == (2048.0, 0.0, "ROCm")
    ]
    speed = {build_of(r.source, r.date): r.tok_s or 0.0 for r in rows if r.date > "2025-08"}
    assert speed["hip+hipblaslt"] > 2.5 * speed["hip"]


def test_an_installation_is_a_build_of_a_month() -> None:
    assert installation_of(STRIX, "2025-08-04T10:37:58Z").endswith(" hip 2025-08")
    assert installation_of("somebody/else@0:a/b.jsonl", "2025") == "somebody/else"


def test_a_prompt_told_in_notes_is_the_one_computed() -> None:
    """11,000 tokens in passes of 512 and 10 generated, as the source words it."""
    row = next(r for r in packaged_energy() if "prompt ~11K tokens + 10 generated" in r.notes)
    found = energy_observation(row)
    assert isinstance(found, EnergyObservation)
    (prefill, once), (decode, times) = found.loads
    assert (prefill.n_prompt, once, decode.n_depth, times) == (11_000, 1.0, 11_005, 10.0)
    assert found.n_tokens == 11_000
    assert found.activity.seconds == pytest.approx(11_000 / (row.tok_s or 0))


def test_a_batch_below_the_micro_batch_is_what_a_pass_computes() -> None:
    m = next(m for m in packaged() if m.n_ubatch == 512 and m.n_batch == 256)
    assert of_measurement(m).n_ubatch == 256


def test_a_knee_says_what_nothing_holds_down(board: tuple[EnergyObservation, ...]) -> None:
    """The RTX 3090 has its least energy a token of Qwen 27B at 290 W, of 35B-A3B at 210 W."""
    found = {
        (o.host.name, o.model_id, o.phase): o.watts / KNEE_TO_TOP for o in knee_readings(board)
    }
    card = "NVIDIA GeForce RTX 3090"
    assert found[card, "qwen3.5-27b", "decode"] == pytest.approx(290, abs=1)
    assert found[card, "qwen3.5-35b-a3b", "decode"] == pytest.approx(210, abs=1)
    assert all(o.is_knee and o.limit_w is None for o in knee_readings(board))


def test_few_limits_and_a_least_at_the_lowest_have_no_knee(
    board: tuple[EnergyObservation, ...],
) -> None:
    sweep = [o for o in board if o.host.name.endswith("RTX 3090") and o.phase == "decode"]
    sweep = [o for o in sweep if o.model_id == "qwen3.5-27b"]
    assert len(knee_readings(sweep)) == 1
    assert knee_readings(sweep[:4]) == []
    assert knee_readings([o for o in sweep if (o.limit_w or 0) >= 300]) == []


def test_a_knee_is_no_row_and_no_cap_holds_it(board: tuple[EnergyObservation, ...]) -> None:
    """A card seen at its limit alone is predicted at it, and above it where nothing holds it."""
    free = [o for o in board if is_free(o) and o.host.name.endswith("RTX 3090")]
    design = energy_design([*free, *knee_readings(board)])
    assert np.isinf(design.raised).sum() == len(knee_readings(board))
    fitted = fit_energy(design)
    shares = np.exp(predict_log_share(fitted, design))
    knees = np.isinf(design.raised)
    assert shares[~knees].max() < 1.1
    assert shares[knees].max() > 1.3


def _scaled(rows: list[EnergyRow], factor: float) -> list[EnergyRow]:
    return [replace(r, tok_s=(r.tok_s or 0.0) * factor) for r in rows]


def test_another_model_of_an_installation_tells_its_speed(strix: list[EnergyRow]) -> None:
    """An installation half as fast is seen to be so by its other models, the own left out."""
    rows = [
        r
        for r in strix
        if r.backend == "Vulkan"
        and r.phase == "prefill"
        and r.flash_attn == 1
        and any(name in r.source for name in ("llama-2-7b.Q4_K_M", "Mistral-Small"))
        and r.date < "2025-08"
    ]
    own = energy_observation(next(r for r in rows if "Mistral" in r.source and r.n_prompt == 4096))
    assert isinstance(own, EnergyObservation)
    known = installations(rows)
    assert {p.model for p in known[key_of(own)]} == {"llama-2-7b", "mistral-small-24b"}
    at = calibrated_seconds([own], known, released())
    slower = calibrated_seconds([own], installations(_scaled(rows, 0.5)), released())
    assert 1.5 < slower[0] / at[0] < 2.1
    # Its own speed has no part in it, and without another model nothing is said.
    mistral = [r for r in rows if "Mistral" in r.source]
    llama = [r for r in rows if "Mistral" not in r.source]
    same = calibrated_seconds([own], installations([*llama, *_scaled(mistral, 9.0)]), released())
    assert same[0] == pytest.approx(at[0])
    assert np.isnan(calibrated_seconds([own], installations(mistral), released())[0])
