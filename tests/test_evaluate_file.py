"""`tokcast evaluate --on`: bad rows are counted and explained, the rest is scored."""

import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cli_tools import good, refused, run
from cohort import CHIPS, small

from tokcast.cli import evaluate_file
from tokcast.fits.light import violations
from tokcast.fits.observations import Observation, observe
from tokcast.fits.released import released
from tokcast.fits.scoring import predicted_log_rate, score_rows
from tokcast.measurements.schema import packaged, parse_row
from tokcast.predictor.roofline import ceiling_tok_per_s, tokens_of

BASE = {
    "source": "somebody",
    "chip": "NVIDIA GeForce RTX 4090",
    "runtime": "llama.cpp",
    "backend": "CUDA",
    "date": "2025-06-01",
    "model_id": "llama-3.1-8b",
    "file_type": "Q4_K_M",
    "size_gib": "4.58",
    "phase": "decode",
    "n_gen": "128",
    "n_depth": "0",
    "tok_s": "140",
}
BAD = {
    "unknown-chip": {"chip": "Abacus 9000"},
    "unknown-model": {"model_id": "nonesuch-7b"},
    "unknown-type": {"file_type": "Q9_Z"},
    "negative": {"tok_s": "-3"},
    "missing": {"tok_s": ""},
    "text": {"tok_s": "1.4k"},
    "thousands": {"tok_s": "0.14"},
    "bytes for GiB": {"size_gib": "4920000000"},
    "GB for GiB": {"size_gib": "4.92"},
    "no depth": {"n_depth": ""},
    "phase": {"phase": "both"},
    "faster than light": {"tok_s": "14000"},
}
HEAD = tuple(reversed(BASE))


def csv(rows: list[dict[str, str]], extra: str = "") -> str:
    lines = [",".join((*HEAD, "note"))]
    lines += [",".join((*(r[name] for name in HEAD), extra)) for r in rows]
    return "\n".join(lines) + "\n"


@pytest.fixture
def few_packaged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold the packaged rows of the baselines to a few chips, for speed."""
    rows = tuple(m for m in packaged() if m.chip in CHIPS[:3])
    monkeypatch.setattr(evaluate_file, "packaged", lambda: rows)


@pytest.mark.usefixtures("few_packaged")
def test_bad_rows_are_counted_and_the_rest_scored(tmp_path: Path) -> None:
    rows = [BASE, *({**BASE, **change} for change in BAD.values())]
    path = tmp_path / "rows.csv"
    # A header in another order, an extra column, and an encoding of old.
    path.write_bytes(csv(rows, extra="Müller").encode("latin-1"))
    data = json.loads(good("evaluate", "--on", path, "-o", "json"))
    assert data["rows"] == len(rows)
    decode = data["phases"]["decode"]
    # The good row and the one whose size is in GB, which makes no difference to a stock file.
    assert (decode["rows"], decode["n_hosts"]) == (1, 1)
    reasons = data["skipped"]
    assert sum(reasons.values()) == len(BAD) - 1
    for part in (
        "unknown-chip",
        "unknown-model",
        "tok_s is '-3'",
        "tok_s is ''",
        "tok_s is '1.4k', expected a number",
        "unit-slip",
        "no-length",
        "phase is 'both'",
        "above-roof",
    ):
        assert any(part in reason for reason in reasons), part
    assert next(n for r, n in reasons.items() if "unknown-model" in r) == 2
    assert next(n for r, n in reasons.items() if "unit-slip" in r) == 2


@pytest.mark.usefixtures("few_packaged")
def test_a_chip_under_its_usual_name_is_scored(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    usual = [{**BASE, "chip": chip} for chip in ("rtx 4090", "RTX 3080", "Abacus 9000")]
    path.write_text(csv(usual))
    text = " ".join(good("evaluate", "--on", path).split())
    assert text.startswith(f"3 rows of {path}: 1 configurations scored")
    assert "Chips read by their usual names: rtx 4090 as NVIDIA GeForce RTX 4090." in text
    # RTX 3080 can mean two chips, and nothing is chosen.
    assert "Skipped 2: unknown-chip" in text


@pytest.mark.usefixtures("few_packaged")
def test_many_reasons_fit_a_screen(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(csv([{**BASE, "tok_s": f"x{i}"} for i in range(100)]))
    answer = run("evaluate", "--on", path)
    assert answer.code == 1
    assert "Skipped 92 more for 92 other reasons (-o json has them)." in answer.out
    assert len(answer.out.splitlines()) < 24
    assert "held-out" not in answer.out
    data = json.loads(run("evaluate", "--on", path, "-o", "json").out)
    assert len(data["skipped"]) == 100


@pytest.mark.usefixtures("few_packaged")
def test_new_chips_and_models_are_named_and_nothing_to_score_is_no(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(csv([{**BASE, "chip": "NVIDIA GeForce RTX 5090"}]))
    data = json.loads(good("evaluate", "--on", path, "-o", "json"))
    assert data["new_chips"] == ["NVIDIA GeForce RTX 5090"]
    decode = data["phases"]["decode"]
    assert {"mape", "median_ape", "p90_ape", "host_mean_mape", "bias"} <= set(decode)
    assert {"coverage80", "coverage95", "by_evidence", "by_host", "baselines"} <= set(decode)
    path.write_text(csv([{**BASE, "chip": "Abacus"}]))
    assert run("evaluate", "--on", path).code == 1


def test_what_is_refused(tmp_path: Path) -> None:
    assert "expected a CSV file" in refused("evaluate", "--on", tmp_path / "none.csv")
    assert "no such folder" in refused("evaluate", "--save", tmp_path / "none")
    assert "--folds" in refused("evaluate", "--folds", "1")
    assert "expected one of" in refused("evaluate", "-o", "xml")


def test_a_cluster_needs_dask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert "dask is not installed" in refused("evaluate", "--cluster", "local")


def test_rows_alike_are_looked_up_once() -> None:
    """What makes a million rows take a minute: only a row's own figures are looked at anew."""
    first = parse_row(dict(BASE))
    rows = [replace(first, tok_s=100.0 + i / 1000) for i in range(20_000)]
    observe(rows[:1])
    start = time.process_time()
    (found,), rejected = observe(rows)
    assert time.process_time() - start < 5
    assert (found.rows, len(rejected)) == (len(rows), 0)
    assert found.tok_per_s == pytest.approx(109.9995)


def test_observing_row_by_row_is_the_same() -> None:
    rows = [m for m in packaged() if m.chip == CHIPS[0]]
    together, rejected = observe(rows)
    alone = [observe([m]) for m in rows]
    assert sum(len(r) for _, r in alone) == len(rejected)
    assert {o.works for found, _ in alone for o in found} == {o.works for o in together}


# --- the speed of light


def test_a_measurement_above_the_ceiling_is_shown_with_its_row() -> None:
    rows = [parse_row(dict(BASE)), parse_row({**BASE, "tok_s": "14000", "source": "liar"})]
    _, rejected = observe(rows)
    (found,) = violations(rejected)
    assert found.row.source == "liar"
    # 4.6 GB of weights at 1008 GB/s.
    assert found.ceiling_tok_per_s == pytest.approx(1008e9 / 4.64e9, rel=0.03)


def share_of_ceiling(o: Observation) -> float:
    ceilings = [
        ceiling_tok_per_s(works, o.host, tokens_of(load))
        for load, works in zip(o.workloads, o.works, strict=True)
    ]
    return o.tok_per_s / float(np.mean(ceilings))


def test_no_clean_packaged_row_is_above_its_ceiling() -> None:
    observations, rejected = observe(packaged())
    assert max(map(share_of_ceiling, observations)) <= 1.0
    assert len(observations) > 6000
    assert [v.row.chip for v in violations(rejected)] == ["Intel Xeon E5-2697 v2"]


# --- scores say what they should


def test_perfect_figures_score_nought_and_shuffled_ones_do_not() -> None:
    rows = [parse_row({**BASE, "n_depth": str(d), "tok_s": "90"}) for d in (0, 2048, 8192)]
    observations, _ = observe(rows)
    rates = np.exp(predicted_log_rate(observations, released()))
    perfect = [replace(m, tok_s=float(r)) for m, r in zip(rows, rates, strict=True)]
    score = score_rows(perfect, released(), small()).phases["decode"]
    assert score.score.mape == pytest.approx(0, abs=1e-6)
    assert (score.coverage80, score.coverage95) == (1.0, 1.0)
    shuffled = [replace(m, tok_s=float(r)) for m, r in zip(rows, rates[::-1], strict=True)]
    worse = score_rows(shuffled, released(), small()).phases["decode"]
    assert worse.score.n == 3
    assert worse.score.mape > 5
