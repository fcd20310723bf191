"""`tokcast select` on the catalogue: the screen, hosts, reasons, pictures, bad input."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from cli_tools import good, refused, run

HOST = ("--host", "RTX 4090")


def _screen(*args: str | Path) -> list[str]:
    return good("select", *args).splitlines()


def test_one_screen_with_the_verdict_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = _screen(*HOST)
    assert "on NVIDIA GeForce RTX 4090 (llama.cpp, CUDA)" in lines[0]
    assert "tok/s generating" in lines[1]
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    assert lines[-1].startswith("Run it: llama-server -hf OWNER/REPO:")
    assert " candidates meet the wishes; ruled out: " in " ".join(lines)


def test_the_whole_catalogue_is_judged() -> None:
    data = json.loads(good("select", *HOST, "-o", "json"))
    assert data["n_candidates"] == len(data["candidates"]) >= 2500
    for candidate in data["candidates"][:: len(data["candidates"]) // 50]:
        assert candidate["decode_low"] <= candidate["decode_tok_per_s"] <= candidate["decode_high"]
        spare = candidate["available_bytes"] - candidate["need_bytes"]
        assert candidate["spare_bytes"] == spare
        assert candidate["feasible"] == (candidate["misses"] is None)


def test_a_figure_is_that_of_predict() -> None:
    picked = json.loads(good("select", *HOST, "--at-depth", "4k", "-o", "json"))["pick"]
    args = ("predict", picked["address"], *HOST, "-d", "4k", "-o", "json")
    predictions = json.loads(good(*args))["predictions"]
    by_phase = {p["phase"]: p for p in predictions}
    for phase in ("decode", "prefill"):
        for ours, theirs in (("tok_per_s", "tok_per_s"), ("low", "low"), ("high", "high")):
            expected = by_phase[phase][theirs]
            assert picked[f"{phase}_{ours}"] == pytest.approx(expected, rel=1e-9)


def test_apple_s_chips_have_mlx_candidates_and_others_when_asked() -> None:
    apple = json.loads(good("select", "qwen3-8b", "--host", "M2 Ultra 76-core", "-o", "json"))
    assert {c["format"] for c in apple["candidates"]} == {"gguf", "mlx"}
    one = json.loads(good("select", "qwen3-8b", *HOST, "--runtime", "mlx", "-o", "json"))
    assert {c["runtime"] for c in one["candidates"]} == {"mlx"}
    other = json.loads(good("select", "qwen3-8b", *HOST, "-o", "json"))
    assert {c["format"] for c in other["candidates"]} == {"gguf"}


def test_why_says_by_how_much() -> None:
    out = good("select", *HOST, "--why", "llama-3.1-70b@Q8_0", "--min-decode", "20")
    assert "0 of 1 files called 'llama-3.1-70b@Q8_0' meet the wishes" in out
    assert "too much" in out
    assert "below --min-decode 20" in " ".join(out.split())
    assert "no candidate is called so" in refused("select", *HOST, "--why", "gpt-9")


def test_what_if_adds_a_line_a_host() -> None:
    out = good("select", "qwen3-8b", *HOST, "--what-if", "RTX 5090", "--what-if", "RTX 3090")
    for name in ("RTX 4090", "RTX 5090", "RTX 3090"):
        assert any(line.startswith(f"NVIDIA GeForce {name} ") for line in out.splitlines())
    data = json.loads(good("select", "qwen3-8b", *HOST, "--what-if", "RTX 5090", "-o", "json"))
    (other,) = data["what_if"]
    assert other["pick"]["decode_tok_per_s"] > data["pick"]["decode_tok_per_s"] * 0.9


def test_hosts_the_other_way_round(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.txt"
    hosts.write_text("RTX 4090\nRTX 5090  # newer\n\nM4 Pro 20-core\nRTX 3050 6GB\n")
    args = ("select", "qwen3-30b-a3b@Q4_K_M", "--hosts", hosts, "--min-decode", "100")
    data = json.loads(good(*args, "-o", "json"))
    names = [c["host"] for c in data["candidates"]]
    assert names[:2] == ["NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 5090"]
    feasible = [c["feasible"] for c in data["candidates"]]
    assert feasible == [True, True, False, False]
    speeds = [c["decode_tok_per_s"] for c in data["candidates"] if c["feasible"]]
    assert speeds == sorted(speeds)
    assert "2 of 4 hosts run Qwen3 30B-A3B at 100 tok/s" in good(*args)
    assert "expected a MODEL to run on them" in refused("select", "--hosts", hosts)


def test_every_known_host() -> None:
    out = good(
        "select", "llama-3.1-8b@Q4_K_M", "--hosts", "all", "--min-decode", "20", "--top", "3"
    )
    assert " hosts run Llama 3.1 8B at 20 tok/s with every wish met" in out
    assert "unknown" not in out


def test_workloads_give_seconds_a_turn() -> None:
    args = ("select", "qwen3-8b", *HOST, "--workload", "coding-agent-small", "-o", "json")
    data = json.loads(good(*args))
    assert data["wishes"]["workload"]["profile"] == "coding-agent-swebench-local"
    assert data["wishes"]["n_context"] == 16896
    assert all(c["turn_s"] > 0 for c in data["candidates"])
    sorted_ = json.loads(good(*args, "--sort", "turn"))
    turns = [c["turn_s"] for c in sorted_["candidates"] if c["feasible"]]
    assert turns == sorted(turns)
    limited = json.loads(run(*args, "--max-turn", "1ms").out)
    assert limited["n_feasible"] == 0


def test_nothing_that_meets_the_wishes_is_an_answer_too() -> None:
    result = run("select", *HOST, "--min-decode", "100000")
    assert result.code == 1
    assert "Nothing of " in result.out
    assert "Nearest: " in result.out


def test_a_picture(tmp_path: Path) -> None:
    path = tmp_path / "front.svg"
    good("select", "qwen3-8b", *HOST, "--plot", path)
    root = ET.parse(path).getroot()
    circles = root.findall("{http://www.w3.org/2000/svg}circle")
    data = json.loads(good("select", "qwen3-8b", *HOST, "-o", "json"))
    known = [c for c in data["candidates"] if c["feasible"] and c["ppl_ratio"] is not None]
    # Files of 16 bits have no published loss of their own: it is none.
    assert len(circles) == len(known) + sum(
        c["quant"] in ("F16", "BF16", "F32") and c["feasible"] for c in data["candidates"]
    )
    on_front = sum(c["pareto_front"] for c in data["candidates"])
    assert sum(c.get("class") == "f" for c in circles) == on_front
    assert "ends with .svg" in refused("select", "qwen3-8b", *HOST, "--plot", tmp_path / "x.gif")
    nowhere = tmp_path / "none" / "x.svg"
    assert "No such file" in refused("select", "qwen3-8b", *HOST, "--plot", nowhere)


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("--min-decode", "fast"), "--min-decode 'fast': expected tokens/s, a number above 0"),
        (("--min-decode", "-3"), "--min-decode '-3'"),
        (("--max-ttft", "3 parsecs"), "--max-ttft: time '3 parsecs'"),
        (("--quality-floor", "0.5"), "--quality-floor '0.5': expected a loss"),
        (("--sort", "beauty"), "--sort 'beauty': expected one of size, speed"),
        (("--sort", "turn"), "--sort turn: expected a --workload"),
        (("--workload", "gossip"), "--workload 'gossip': expected one of chat"),
        (("--top", "0"), "--top '0': expected one number of at least 1"),
        (("--at-depth", "1,2"), "--at-depth '1,2': expected one number"),
        (("--backend", "Metal"), "runs on chips of Apple"),
        (("--runtime", "vllm"), "--runtime 'vllm': expected llama.cpp or mlx"),
        (("--context", "0"), "-c '0'"),
        (("-o", "xml"), "-o xml: unknown format"),
        (("-ctk", "q7"), "-ctk 'q7': expected one of"),
    ],
)
def test_bad_input_is_one_line(args: tuple[str, ...], expected: str) -> None:
    assert expected in refused("select", *HOST, *args)


def test_formats_agree() -> None:
    args = ("select", "qwen3-8b", *HOST)
    data = json.loads(good(*args, "-o", "json"))
    lines = [json.loads(line) for line in good(*args, "-o", "jsonl").splitlines()]
    assert lines == data["candidates"]
    table = good(*args, "-o", "md").splitlines()
    assert table[0].startswith("| file | quant | bits | tok/s |")


def test_a_cache_type_has_its_published_loss_beside() -> None:
    out = good("select", "qwen3-8b", *HOST, "-ctk", "q8_0", "-ctv", "q8_0")
    assert "K/V cache q8_0/q8_0: perplexity x" in out
    assert "-ctk q8_0 -ctv q8_0" in out
    assert "K/V cache" not in good("select", "qwen3-8b", *HOST)


def test_energy_is_bounded_by_the_nameplate_power() -> None:
    data = json.loads(good("select", "qwen3-8b@Q4_K_M", *HOST, "-o", "json"))
    pick = data["pick"]
    assert pick["most_joules_per_token"] == pytest.approx(450 / pick["decode_tok_per_s"])
    words = " ".join(good("select", "qwen3-8b@Q4_K_M", *HOST).split())
    found = re.search(r"; ([\d.]+) J a token \(([\d.]+) - ([\d.]+); same host\)", words)
    assert found is not None
    joules, low, high = map(float, found.groups())
    assert low < joules < high
    assert joules < pick["most_joules_per_token"]
    unknown = json.loads(
        good(
            *("select", "qwen3-8b@Q4_K_M", "--bandwidth", "400", "--tflops", "30"),
            *("--memory", "24G", "-o", "json"),
        )
    )
    assert unknown["pick"]["most_joules_per_token"] is None
