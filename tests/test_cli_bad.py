"""Bad input at the command: one line that names the thing, exit code 2, at once."""

import io
import json
import os
import pickle
import re
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import gguf_bytes as g
import pytest
from cli_tools import MODEL, RTX, good, refused, run, save
from gguf_bytes import Build
from http_server import Page, serve
from model_files import CONFIG, mlx_files, safetensors
from small_models import KEYS, attention, dense, feed_forward, header, outside, tensor

from tokcast.cli.startup import file_error
from tokcast.predictor.header import Header, Value

pytestmark = pytest.mark.usefixtures("empty_home")


def zipped(name: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(name, "x")
    return out.getvalue()


def tensors_at(*offsets: int) -> bytes:
    build = Build(n_data=128)
    for index, offset in enumerate(offsets):
        build.tensor(b"t%d" % index, (8,), 0, offset)
    return build.bytes()


WHAT_IT_IS = {
    "empty": (b"", "an empty file"),
    "magic alone": (b"GGUF", "the end of the file at byte 4"),
    "other magic": (b"FUGG" + bytes(99), "a file that begins b'FUGG"),
    "before GGUF": (b"tjgg\1\0\0\0" + bytes(99), "a GGML file (ggjt) from before GGUF"),
    "HTML": (b"<!DOCTYPE html><html><head>", "an HTML or XML page"),
    "Git LFS": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "a Git LFS pointer"),
    "pickle": (pickle.dumps({"weights": [0.0]}), "a Python pickle"),
    "ZIP": (zipped("model.gguf"), "a ZIP archive"),
    "PyTorch": (zipped("archive/data.pkl"), "a PyTorch checkpoint"),
    "safetensors": (safetensors({"w": ("F16", (2, 2))}), "a safetensors file"),
    "JSON": (b'{"error": "Entry not found"}', """JSON that begins '{"error": "Entry"""),
    "zeros": (bytes(4096), "zero bytes only: an unfinished download?"),
    "version 0": (b"GGUF" + bytes(20), "found version 0"),
    "version 4": (struct.pack("<4sIQQ", b"GGUF", 4, 0, 0), "found version 4"),
    "endless tensors": (struct.pack("<4sIQQ", b"GGUF", 3, 2**64 - 1, 0), "found a count of"),
    "endless keys": (struct.pack("<4sIQQ", b"GGUF", 3, 0, 2**63), "found a count of"),
    "endless key": (struct.pack("<4sIQQQ", b"GGUF", 3, 0, 1, 2**62) + bytes(8), "found 4611686"),
    "endless array": (
        Build().entry(b"a", g.ARRAY, struct.pack("<IQ", 4, 2**63)).bytes(),
        "expected the value of a",
    ),
    "array of arrays": (
        Build().entry(b"a", g.ARRAY, struct.pack("<IQ", 9, 1) * 1000).bytes(),
        "found an array of arrays",
    ),
    "value type": (Build().entry(b"a", 13, bytes(8)).bytes(), "found type 13"),
    "empty key": (Build().u32(b"", 1).bytes(), "1 to 65535 bytes, found 0"),
    "key twice": (Build().u32(b"x", 1).u32(b"x", 1).bytes(), "found x again"),
    "alignment": (Build().u32(b"general.alignment", 13).bytes(), "power of two"),
    "dimensions": (Build().tensor(b"t", (1,) * 5).bytes(), "at most 4 dimensions, found 5"),
    "no dimension": (Build(n_data=64).tensor(b"t", (32, 0)).bytes(), "found dimensions (32, 0)"),
    "overflow": (Build(n_data=64).tensor(b"t", (2**63 - 1, 2)).bytes(), "1 to 2^63 - 1 elements"),
    "half a block": (Build(n_data=64).tensor(b"t", (31,), 2).bytes(), "found rows of 31"),
    "long name": (Build().tensor(b"n" * 64, (1,)).bytes(), "a name of 1 to 63 bytes"),
    "offset": (tensors_at(0, 2**64 - 1), "at a multiple of 32"),
    "overlap": (tensors_at(0, 0), "to end by 0, found offset 0"),
}


@pytest.mark.parametrize("case", WHAT_IT_IS)
def test_what_is_no_model(case: str, tmp_path: Path) -> None:
    data, words = WHAT_IT_IS[case]
    path = tmp_path / "m.gguf"
    path.write_bytes(data)
    for command in (("predict", path, *RTX), ("inspect", path)):
        line = refused(*command)
        assert re.match(rf"{re.escape(str(path))}: byte \d+: expected ", line)
        assert words in line


def test_a_file_cut_anywhere(tmp_path: Path) -> None:
    data = save(tmp_path / "whole.gguf", dense()).read_bytes()
    path = tmp_path / "cut.gguf"
    for end in range(0, len(data) - 32, 29):
        path.write_bytes(data[:end])
        assert refused("inspect", path).startswith(f"{path}: byte ")


def test_the_same_over_the_web() -> None:
    pages = {
        "/a.gguf": Page(b"<!DOCTYPE html><title>Sign in</title>" + bytes(999)),
        "/b.gguf": Page(statuses=[404]),
        "/c.gguf": Page(statuses=[401]),
    }
    with serve(pages) as server:
        assert "an HTML or XML page" in refused("predict", f"{server.url}/a.gguf", *RTX)
        for name in ("b", "c", "nowhere"):
            line = refused("predict", f"{server.url}/{name}.gguf", *RTX)
            assert f"{server.url}/{name}.gguf" in line
        assert "offline" in refused("predict", f"{server.url}/a.gguf", *RTX, "--offline")


def test_folders(tmp_path: Path) -> None:
    line = refused("predict", tmp_path, *RTX)
    assert line == (
        f"{tmp_path}: expected a .gguf file with all its parts, or config.json with safetensors; "
        "found nothing"
    )
    for name in ("a.gguf", "b.gguf"):
        save(tmp_path / name, dense())
    assert "expected one model, found 2: a.gguf, b.gguf" in refused("predict", tmp_path, *RTX)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_what_would_never_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    for path in (tmp_path / "pipe.gguf", "/dev/zero", "/dev/null"):
        assert "expected a GGUF file, found a device" in refused("predict", path, *RTX)


def test_broken_mlx_folders(tmp_path: Path) -> None:
    files = mlx_files()
    config = tmp_path / "config.json"
    for name, body in files.items():
        (tmp_path / name).write_bytes(body)
    for text in (b"", b"not json", b"[]", b"\xff\xfe" * 9):
        config.write_bytes(text)
        refused("predict", tmp_path, "--host", "M4 Max 40-core")
    config.write_text(json.dumps(CONFIG))
    shard = tmp_path / "model-00002-of-00002.safetensors"
    for body in (b"", b"\xff" * 8, struct.pack("<Q", 2**62) + b"{}", b"<html>" * 9):
        shard.write_bytes(body)
        refused("predict", tmp_path, "--host", "M4 Max 40-core")
    shard.unlink()
    assert "model-00002-of-00002" in refused("predict", tmp_path, "--host", "M4 Max 40-core")


@pytest.mark.parametrize(
    "address",
    [
        "",
        " ",
        "nowhere.gguf",
        "no-such-model",
        "no-such-model@Q4_K_M",
        "llama-3.1-8b@Q9_Z",
        "@",
        "hf:",
        "hf:a",
        "ollama:",
        "https://",
        "ftp://host/a.gguf",
        "a\nb.gguf",
        "\x1b[31mred",
        "x" * 5000,
    ],
)
def test_addresses(address: str) -> None:
    refused("predict", address, *RTX, "--offline")


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (
            ["-p", "x"],
            "-p 'x': expected whole numbers from 0 up and below 2^31, such as 512 or 64k",
        ),
        (["-p", ""], "-p '': expected 1 to 64 numbers: 0,4k,16k"),
        (["-d", "-1"], "-d '-1': expected whole numbers from 0 up"),
        (["-d", ",".join("1" * 65)], "-d '1,1,"),
        (["-d", "16k-4k"], "-d '16k-4k': expected a range that rises and ends, as 0-16k+4k or"),
        (["-d", "0-8k*2"], "-d '0-8k*2': expected a range that rises and ends"),
        (["-d", "1-8k*1"], "-d '1-8k*1': expected a range that rises and ends"),
        (["-d", "0-64"], "-d '0-64': expected 1 to 64 numbers"),
        (["-d", "0-4k+x"], "-d 'x': expected whole numbers from 0 up"),
        (["-d", "1e99"], "-d '1e99': expected whole numbers"),
        (["-p", "9999999999999"], "-p '9999999999999': expected whole"),
        (["-d", "0,,4k"], "-d '': expected whole numbers from 0 up"),
        (["-p", "0", "-n", "0"], "-p 0 -n 0: nothing to predict; expected a prompt or tokens to"),
        (["-ub", "0"], "-ub '0': expected one number of at least 1"),
        (["-ub", "1,2"], "-ub '1,2': expected one number of at least 1"),
        (["-c", "0"], "-c '0': expected one number of at least 1"),
        (["-ctk", "q9"], "-ctk 'q9': expected one of f32, f16, bf16, q8_0, q4_0, q4_1, iq4_nl,"),
        (["-ctv", "f16,q8_0"], "-ctv 'f16,q8_0': expected one of f32, f16"),
        (["-fa", "maybe"], "-fa 'maybe': expected on, off or auto"),
        (["--backend", "OpenCL"], "--backend 'OpenCL': expected one of CUDA, ROCm, Vulkan"),
        (["--backend", "metal"], "--backend Metal: runs on chips of Apple, not on NVIDIA GeForce"),
        (["--backend", "mlx"], "--backend MLX: not one of the runtime llama.cpp; expected"),
        (["--runtime", "vllm"], "--runtime 'vllm': expected llama.cpp or mlx"),
        (["--runtime", "mlx"], "--runtime mlx: does not read GGUF models; expected an MLX folder"),
        (["--bandwidth", "fast"], "bandwidth 'fast': expected GB/s, such as 400, 400GB/s or"),
        (
            ["--bandwidth", "1,8TB/s"],
            "bandwidth '1,8TB/s': expected GB/s, such as 400, 400GB/s or 1.8TB/s; decimals are"
            " written with a point: 1.8TB/s",
        ),
        (
            ["--memory", "7,5G"],
            "memory '7,5G': expected a size such as 24G, 512M or 24000000000; d",
        ),
        (["--energy", "--price", "0,30"], "--price '0,30': expected what a kWh costs, a number ab"),
        (["--bandwidth", "1e-300"], "bandwidth '1e-300' is not positive and finite: expected GB/s"),
        (["--memory", "0.5k"], "memory '0.5k' is less than any device has: expected a size such"),
        (["-ts", "1e-300"], "-ts '1e-300': expected proportions from 0 up, one for each card"),
        (["--trace", "x" * 3000], "xxxx"),
        (["-o", "x" * 30_000], "-o xxx"),
        (["--bandwidth", "nan"], "bandwidth 'nan' is not positive and finite: expected GB/s"),
        (["--tflops", "-3"], "tflops '-3' is not positive and finite: expected TFLOPS, such as"),
        (["--memory", "24"], "memory '24' means 24 bytes: write 24G"),
        (["-o", "yaml"], "-o yaml: unknown format; expected one of table, json, jsonl, csv, md"),
    ],
)
def test_options(args: list[str], line: str) -> None:
    told = refused("predict", MODEL, *RTX, *args)
    assert told.startswith(line)
    # Not a page of what was typed.
    assert len(told) <= 1600


@pytest.mark.parametrize(
    ("file", "words", "is_named"),
    [
        ("..", ("scaling", "--save", ".."), True),
        (".", ("scaling", "--save", ""), True),
        ("x/accuracy.md", ("evaluate", "--save=x"), True),
        ("/usr/lib/python/zlib.py", ("predict", "x"), False),
        (None, ("predict", "x"), False),
    ],
)
def test_only_a_file_that_was_named_is_the_user_s(
    file: str | None, words: tuple[str, ...], is_named: bool
) -> None:
    told = file_error(OSError(21, "Is a directory", file), words)
    line = f"tokcast: {file}: Is a directory; expected a file that can be read or written"
    assert told == (line if is_named else None)
    assert file_error(ValueError("a defect"), words) is None


def test_a_folder_to_save_to_is_one_line() -> None:
    # Only once its work is done does a command know.
    result = run("scaling", "--save", "..")
    line = "tokcast: ..: Is a directory; expected a file that can be read or written\n"
    assert (result.code, result.err) == (2, line)


@pytest.mark.parametrize("args", [("-c", ""), ("--backend", "")])
def test_an_empty_value_is_not_the_default(args: tuple[str, str]) -> None:
    assert refused("plan", MODEL, *RTX, *args).startswith(f"{args[0]} '': expected")


@pytest.mark.parametrize(
    ("host", "line"),
    [
        ("abacus", "host 'abacus' is not a known chip; name one as in 'RTX 4090', or"),
        ("RTX 4095", "host 'RTX 4095' is not a known chip; nearest: NVIDIA GeForce RTX 40"),
        ("3080", "host '3080' can mean 2 chips: NVIDIA GeForce RTX 3080 (10 GB), NVIDIA GeForce"),
        ("0x RTX 4090", "host '0x RTX 4090'"),
        ("", "host ''"),
        ("nowhere.toml", "nowhere.toml: No such file or directory: expected a TOML host file"),
        ("\x1b[31m", r"host '\x1b[31m'"),
    ],
)
def test_hosts(host: str, line: str) -> None:
    assert refused("predict", MODEL, "--host", host).startswith(line)
    if not host.endswith(".toml"):
        assert refused("hosts", "show", host).startswith(line)


@pytest.mark.parametrize(
    ("variable", "value", "line"),
    [
        ("HF_ENDPOINT", "mirror", "HF_ENDPOINT 'mirror': expected an address that begins with ht"),
        ("HTTPS_PROXY", "carrier://pigeon:1", "HTTPS_PROXY, HTTP_PROXY or ALL_PROXY: Unknown sche"),
        ("ALL_PROXY", "http://[::1", "HTTPS_PROXY, HTTP_PROXY or ALL_PROXY: Invalid port"),
    ],
)
def test_the_environment_is_at_fault(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, line: str
) -> None:
    monkeypatch.setenv(variable, value)
    assert refused("predict", "owner/repo", *RTX).startswith(line)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_one_line() -> None:
    script = str(Path(sys.executable).with_name("tokcast"))
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [script, "predict", MODEL, *RTX], stdout=full, stderr=subprocess.PIPE, check=False
        )
    line = b"tokcast: the output cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (2, line)


@pytest.mark.parametrize(
    ("args", "name"),
    [
        (["--host", "RTX 4090", "--host", "RTX 3090"], "--host"),
        (["-p", "512", "-p", "1024"], "-p"),
        (["-p", "512", "--n-prompt=1024"], "--n-prompt"),
    ],
)
def test_the_last_of_two_values_is_not_taken_in_silence(args: list[str], name: str) -> None:
    assert refused("predict", MODEL, *args).startswith(f"{name} is given twice; expected it once")


@pytest.mark.parametrize("args", [("--tasks", "5"), ("--seed", "abc")])
def test_what_is_of_tasks_needs_some(args: tuple[str, str]) -> None:
    line = "--tasks and --seed are of tasks; expected --workload or --trace too"
    assert refused("predict", MODEL, *args) == line


def test_what_may_be_repeated_may() -> None:
    assert "Fastest that fits" in good("predict", "-m", MODEL, "-m", "qwen3-8b@Q4_K_M", *RTX)
    # A value that looks like an option is a value.
    assert refused("predict", MODEL, "--host", "--host").startswith("host '--host' is not a known")


def test_ranges_are_those_of_llama_bench() -> None:
    text = good("predict", MODEL, *RTX, "-p", "0", "-d", "0-16k+8k,1k-4k*2", "-o", "jsonl")
    depths = [json.loads(line)["n_depth"] for line in text.splitlines()]
    assert depths == [0, 8192, 16384, 1024, 2048, 4096]


def test_a_main_memory_is_no_host() -> None:
    line = "host '64G DDR5-5600': only a main memory; expected a chip too"
    assert refused("predict", MODEL, "--host", "64G DDR5-5600").startswith(line)


def test_a_long_host_is_not_echoed_in_full() -> None:
    assert len(refused("predict", MODEL, "--host", "a" * 100_000)) < 300


def test_an_unknown_host_names_the_three_nearest() -> None:
    line = refused("predict", MODEL, "--host", "RTX 4095")
    nearest = line.partition("nearest: ")[2].partition("; or")[0].split(", ")
    assert len(nearest) == 3
    assert "NVIDIA GeForce RTX 4090" in nearest


def test_a_bad_host_is_found_before_the_model_is_read() -> None:
    with serve({"/m.gguf": Page(b"GGUF")}) as server:
        refused("predict", f"{server.url}/m.gguf", "--host", "abacus")
        assert server.requests == []


@pytest.mark.parametrize(
    "command", [["inspect", MODEL], ["doctor"], ["hosts", "list"], ["hosts", "detect"], ["fit"]]
)
def test_formats_are_checked_before_work(command: list[str]) -> None:
    assert refused(*command, "-o", "xml").startswith("-o xml: unknown format; expected one of")


def _changed(**keys: Value) -> Header:
    metadata = KEYS | {"context_length": 4096, "vocab_size": 10, "feed_forward_length": 16}
    changed = {**metadata, **{k.replace("__", "."): v for k, v in keys.items()}}
    return header("llama", changed, *outside(), *attention(), *feed_forward())


LIES: dict[str, Callable[[], Header]] = {
    "no architecture": lambda: replace(dense(), metadata={}),
    "architecture is a number": lambda: replace(dense(), metadata={"general.architecture": 5}),
    "keys under another name": lambda: replace(
        _changed(), metadata={**_changed().metadata, "general.architecture": "qwen3"}
    ),
    "no blocks": lambda: _changed(block_count=0),
    "endless blocks": lambda: _changed(block_count=2**40),
    "no heads": lambda: _changed(attention__head_count=0),
    "no key heads": lambda: _changed(attention__head_count_kv=0),
    "heads are text": lambda: _changed(attention__head_count="many"),
    "more experts used than there are": lambda: _changed(expert_count=2, expert_used_count=9),
    "short array": lambda: _changed(attention__head_count_kv=()),
    "long array": lambda: _changed(attention__head_count_kv=(1, 2, 3)),
    "negative": lambda: _changed(attention__key_length=-4),
    "width that is none": lambda: _changed(embedding_length=0),
    "endless context": lambda: _changed(context_length=2**63),
    "no context": lambda: _changed(context_length=0),
    "not a number": lambda: _changed(rope__freq_base=float("nan")),
    "infinite": lambda: _changed(rope__scaling__factor=float("inf")),
    "endless window": lambda: _changed(attention__sliding_window=2**62),
    "norm alone": lambda: header("llama", KEYS, tensor("output_norm.weight", 8)),
}


@pytest.mark.parametrize("case", LIES)
def test_headers_that_lie(case: str, tmp_path: Path) -> None:
    """Whatever the metadata say, the answer is a prediction or one line: never a traceback."""
    path = save(tmp_path / "lie.gguf", LIES[case]())
    for command in (("predict", path, *RTX), ("inspect", path)):
        result = run(*command, "-o", "json")
        assert result.cpu_seconds < 2
        if result.code == 2:
            assert refused(*command).startswith((f"{path}: ", "n_"))
        else:
            json.loads(result.out, parse_constant=pytest.fail)
            assert result.err == ""
