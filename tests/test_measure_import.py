"""Figures from other programs' output, in every format and as people paste them."""

import json
from pathlib import Path

import pytest

from tokcast.measurements.importers import read_file, read_text
from tokcast.measurements.importers.bench_table import rate_of, size_gib
from tokcast.measurements.importers.naming import backend_of, chip_of, file_type_of, model_of
from tokcast.predictor.errors import InputError

DATA = Path(__file__).parent / "data" / "bench"


@pytest.mark.parametrize("kind", ["md", "csv", "json", "jsonl", "sql"])
def test_llama_bench_says_the_same_in_all_its_formats(kind: str) -> None:
    found = read_file(DATA / f"gemma.{kind}")
    assert found.skipped == ()
    assert [(m.phase, m.n_prompt, m.n_gen, m.n_depth) for m in found.rows] == [
        ("prefill", 16, 0, 0),
        ("decode", 0, 4, 0),
        ("prefill", 16, 0, 32),
        ("decode", 0, 4, 32),
    ]
    first = found.rows[0]
    assert (first.model_id, first.file_type) == ("gemma-3-270m", "Q4_K_M")
    assert (first.backend, first.n_threads, first.runtime) == ("CPU", 1, "llama.cpp")
    assert first.build == "0c1e570 (1)"
    assert first.params_b == pytest.approx(0.2681, abs=1e-4)
    assert first.size_gib == pytest.approx(246587904 / 2**30, rel=1e-4)
    if kind != "md":
        assert (first.n_batch, first.n_ubatch, first.flash_attn) == (2048, 512, None)
        assert first.date.startswith("2026-11-29 1")


def test_a_record_keeps_the_exact_figure() -> None:
    first = read_file(DATA / "gemma.json").rows[0]
    assert (first.tok_s, first.tok_s_std) == (94.158457, 5.262273)


THREAD = (DATA / "thread.md").read_text(encoding="utf-8")


def test_several_tables_of_a_thread() -> None:
    found = read_text(THREAD, "thread")
    cuda, cpu = found.rows[:3], found.rows[3:]
    assert [m.tok_s for m in cuda] == [12345.67, 8010.1, 140.01]
    assert [m.tok_s_std for m in cuda] == [101.2, 20.5, 0.3]
    assert [m.n_depth for m in cuda] == [0, 4096, 0]
    assert {m.chip for m in cuda} == {"NVIDIA GeForce RTX 4090"}
    assert {(m.model_id, m.file_type, m.ngl, m.flash_attn) for m in cuda} == {
        ("qwen3-8b", "Q4_K_M", "99", 1.0)
    }
    assert {m.build for m in cuda} == {"1a2b3c4d (6123)"}
    assert [(m.phase, m.tok_s, m.tok_s_std) for m in cpu] == [
        ("prefill", 61.2, 0.4),
        ("decode", 14.1, 0.1),
    ]
    assert {(m.backend, m.n_threads, m.file_type, m.build) for m in cpu} == {
        ("CPU", 8, "Q4_0", "deadbeef (1500)")
    }
    reasons = [s.reason for s in found.skipped]
    assert len(reasons) == 2
    assert "prompt and generation in one figure" in reasons[0]
    assert "t/s is None" in reasons[1]


def test_a_json_that_was_cut_off_gives_what_is_whole() -> None:
    text = (DATA / "gemma.json").read_text()
    assert len(read_text(text[: int(len(text) * 0.6)], "cut").rows) == 2


def test_old_and_new_fields_are_both_read() -> None:
    record = {
        "build_commit": "abc1234",
        "build_number": 2000,
        "gpu_info": "NVIDIA GeForce RTX 3090",
        "backends": "CUDA",
        "model_filename": "models/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf",
        "model_type": "llama 8B Q4_K - Medium",
        "model_size": 4912898304,
        "model_n_params": 8030261312,
        "use_mmap": True,
        "n_gpu_layers": 99,
        "n_prompt": 0,
        "n_gen": 128,
        "avg_ts": 120.5,
        "stddev_ts": 0.5,
    }
    row = read_text(json.dumps([record]), "old").rows[0]
    assert (row.chip, row.model_id, row.n_depth) == ("NVIDIA GeForce RTX 3090", "llama-3.1-8b", 0)
    split = {**record, "tensor_split": "0.50/0.50", "n_cpu_moe": 4}
    row = read_text(json.dumps([split]), "split").rows[0]
    assert row.placement == "n_cpu_moe=4;ts=0.50/0.50"


MLX = """Running warmup..
Timing with prompt_tokens=512, generation_tokens=17, batch_size=1.
Trial 1:  prompt_tps=1000.000, generation_tps=85.000, peak_memory=4.500, total_time=1.000
Trial 2:  prompt_tps=1100.000, generation_tps=85.000, peak_memory=4.500, total_time=1.000
Averages: prompt_tps=1050.000, generation_tps=85.000, peak_memory=4.500
"""


def test_mlx_lm_counts_a_token_too_many() -> None:
    prefill, decode = read_text(MLX, "mlx").rows
    assert (prefill.tok_s, prefill.n_prompt, prefill.n_depth) == (1050.0, 512, 0)
    # 17 tokens were counted over the 16 intervals between them.
    assert decode.tok_s == pytest.approx(80.0)
    assert (decode.n_gen, decode.n_depth, decode.backend) == (17, 512, "MLX")
    assert "tps-corrected" in decode.flags
    batched = read_text(MLX.replace("batch_size=1", "batch_size=4"), "mlx")
    assert batched.rows == ()
    assert batched.skipped[0].reason == "batch_size=4, not 1"


LOCALSCORE = {
    "runtime_info": {"name": "llamafile", "version": "0.9.2", "commit": "none"},
    "system_info": {"cpu_name": "AMD EPYC 7352", "ram_gb": 125.6},
    "accelerator_info": {
        "name": "NVIDIA GeForce RTX 3090",
        "manufacturer": "NVIDIA",
        "memory_gb": 24.0,
        "type": "GPU",
    },
    "results": [
        {
            "model_filename": "Llama-3.2-1B-Instruct-Q4_K_M.gguf",
            "name": "pp1024+tg16",
            "n_prompt": 1024,
            "n_gen": 16,
            "prompt_tps": 9000.5,
            "prompt_tps_stddev": 12.0,
            "gen_tps": 300.25,
            "power_watts": 250.0,
            "samples_ns": [1, 2],
        }
    ],
}


def test_localscore_gives_two_figures_a_mix() -> None:
    prefill, decode = read_text(json.dumps(LOCALSCORE), "ls").rows
    assert (prefill.phase, prefill.n_prompt, prefill.tok_s) == ("prefill", 1024, 9000.5)
    assert (decode.phase, decode.n_gen, decode.n_depth, decode.tok_s) == (
        "decode",
        16,
        1024,
        300.25,
    )
    assert (decode.chip, decode.runtime, decode.power_w) == (
        "NVIDIA GeForce RTX 3090",
        "llamafile",
        250.0,
    )
    assert (decode.model_id, decode.file_type) == ("llama-3.2-1b", "Q4_K_M")


LOCALSCORE_TABLE = (DATA / "localscore.txt").read_text(encoding="utf-8")


def test_localscore_prints_a_table() -> None:
    prefill, decode = read_text(LOCALSCORE_TABLE, "ls").rows
    assert (prefill.tok_s, decode.tok_s, decode.n_depth) == (9000.5, 300.25, 1024)
    assert (decode.chip, decode.model_id) == ("NVIDIA GeForce RTX 3090", "llama-3.2-1b")


def test_text_without_figures_is_refused() -> None:
    with pytest.raises(InputError, match="no figures found; expected llama-bench output"):
        read_text("hello\n", "x")
    with pytest.raises(InputError, match="not JSON"):
        read_text("[1,", "x")


def test_names_become_those_tokcast_knows() -> None:
    assert file_type_of("llama 7B Q3_K - Large", "") == "Q3_K_L"
    assert file_type_of("qwen35moe 35B.A3B Q8_0", "") == "Q8_0"
    assert file_type_of("gpt-oss 20B MXFP4 MoE", "") == "MXFP4_MOE"
    assert file_type_of("", "Qwen3-8B-IQ4_XS.gguf") == "IQ4_XS"
    assert file_type_of("llama 7B all F32", "") == "F32"
    assert model_of("", "Qwen3-8B-Q4_K_M.gguf", None) == "qwen3-8b"
    assert model_of("llama 7B Q4_0", "", 6.0) == ""
    assert backend_of("Metal,BLAS") == "Metal"
    assert backend_of("Vulkan") == "Vulkan"
    assert chip_of("AMD Radeon RX 7900 XTX (RADV NAVI31)") == "AMD Radeon RX 7900 XTX"
    assert chip_of("no such thing") == ""


def test_figures_and_sizes_of_cells() -> None:
    assert rate_of("1,234.5 ± 6.7") == (1234.5, 6.7)
    assert rate_of("12.5") == (12.5, None)
    assert size_gib("512.00 MiB") == 0.5
