"""`tokcast triage` and `tokcast roofline`: what they print, find and refuse."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from cli_tools import good, refused, run
from measured import run as record
from oracles import ROOT

from tokcast.cli import triage_sources
from tokcast.hosts.match import find
from tokcast.measurements.record import Task
from tokcast.measurements.store import open_store

LLAMA = ("-m", "llama-3.1-8b@Q4_K_M", "--host", "RTX 4090")
H20 = ("roofline", "walls", "deepseek-v3.2", "--weights", "F8_E4M3", "--host", "H20")
BENCH = Path(__file__).parent / "data" / "bench"


@pytest.fixture(autouse=True)
def _own_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TOKCAST_DATA", str(tmp_path / "store"))


def _tests(*args: str | Path) -> list[dict[str, object]]:
    result = run("triage", *args, "-o", "json")
    assert result.err == ""
    found: list[dict[str, object]] = json.loads(result.out)["tests"]
    return found


def test_a_number_and_its_time_say_the_same() -> None:
    (rate,) = _tests("125", *LLAMA)
    (time,) = _tests("8ms", *LLAMA)
    assert rate == time
    assert rate["place"] == "above"
    assert rate["next"] == "as usual for this stack: launches; no profiler needed"


def test_places_of_a_number() -> None:
    """The floor of this step is 4.6 ms, 217 tokens/s."""
    assert [_tests(str(n), *LLAMA)[0]["place"] for n in (230, 216.5, 190, 90)] == [
        "below",
        "inside",
        "near",
        "above",
    ]


def test_below_the_floor_is_an_answer_of_no() -> None:
    result = run("triage", "300", *LLAMA)
    assert result.code == 1
    assert "an input is wrong;" in " ".join(result.out.split())
    assert "type of the weights" in result.out
    assert good("triage", "100", *LLAMA)


def test_an_unusually_slow_one_says_so() -> None:
    (found,) = _tests("20", *LLAMA)
    # A card that usually generates some 146 tokens/s.
    assert re.match(r"7\.\d times as long as usual for this stack; profile", str(found["next"]))


def test_a_model_that_does_not_fit_is_not_profiled() -> None:
    (found,) = _tests("2", "-m", "llama-3.1-70b@Q8_0", "--host", "RTX 4090")
    assert str(found["next"]).startswith("does not fit")


def test_a_context_beyond_the_models_is_said() -> None:
    shown = good("triage", "5", *LLAMA, "-d", "256k")
    assert "trained for a context of 131072, but 2" in shown


def test_a_kept_run_with_a_residual_that_grows() -> None:
    tests = {Task("decode", 16): 1000.0, Task("decode", 16, 4096): 20.0, Task("prefill", 64): 900.0}
    kept = record(tests)
    store = open_store()
    store.add(kept)
    store.close()
    found = _tests(kept.id[:8], "--host", "RTX 4090")
    assert [f["test"] for f in found] == ["tg16", "tg16 @ d4096", "pp64"]
    assert "times as long as usual for this stack; profile attention: " in str(found[1]["next"])
    assert "'Test Chip' is not a known chip" in refused("triage", kept.id)


def test_a_run_of_this_machine_needs_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = record({Task("decode", 16): 1.0})
    store = open_store()
    store.add(kept)
    store.close()
    here = replace(find("Ryzen 9 7950X"), name="Test Chip")
    monkeypatch.setattr(triage_sources, "detected", lambda: (here, ("a note",)))
    shown = good("triage", kept.id)
    assert "on Test Chip (CPU)" in shown
    assert "Note: a note." in shown


def test_a_file_of_figures() -> None:
    found = _tests(BENCH / "gemma.json", "--host", "Ryzen 9 7950X")
    assert {f["phase"] for f in found} == {"decode", "prefill"}
    assert all(f["place"] == "above" for f in found)


def test_a_file_of_several_models() -> None:
    """Two tests of a catalogue's model are found, what is not known is said."""
    shown = json.loads(run("triage", BENCH / "thread.md", "--host", "RTX 4090", "-o", "json").out)
    assert shown["tests"]
    table = run("triage", BENCH / "thread.md", "--host", "RTX 4090").out
    assert "left out, its model is not in the catalogue" in " ".join(table.split())


def test_what_triage_refuses() -> None:
    assert "its chip is not known here; name it with --host" in refused(
        "triage", BENCH / "gemma.json"
    )
    assert "no run of that id" in refused("triage", "abcdef")
    assert "no figures found" in refused("triage", ROOT / "README.md")
    for number in ("0", "nan", "inf", "fast"):
        assert "tokens/s above 0" in refused("triage", number, *LLAMA)
    assert "not positive" in refused("triage", "0ms", *LLAMA)
    assert "expected a share" in refused("triage", "5", *LLAMA, "--threshold", "much")
    assert "expected decode or prefill" in refused("triage", "5", *LLAMA, "--phase", "both")
    assert "no compute rate" in refused("triage", "5", *LLAMA[:2], "--bandwidth", "400")
    assert "bandwidth '0'" in refused("triage", "5", *LLAMA[:2], "--bandwidth", "0")
    assert "tflops '-1'" in refused("triage", "5", *LLAMA, "--tflops", "-1")


def test_walls_of_two_layouts() -> None:
    data = json.loads(good(*H20, "--devices", "16", "-o", "json"))
    tp, ep = data["layouts"]
    assert [w["resource"] for w in tp["walls"]][-1] == "K/V capacity"
    assert 8 < ep["most_requests"] / tp["most_requests"] < 12
    page = (ROOT / "docs" / "roofline.md").read_text(encoding="utf-8")
    assert f"{tp['most_requests']:.1f}".startswith("78")
    assert f"room for {int(tp['most_requests'])} and {int(ep['most_requests'])} requests" in page


def test_walls_where_nothing_fits() -> None:
    result = run(*H20, "--devices", "4")
    assert result.code == 1
    assert "weights alone do not fit" in result.out


def test_what_walls_refuse() -> None:
    for flag, value, expected in (
        ("--devices", "0", "--devices '0'"),
        ("--layout", "pp", "layout 'pp': expected one of tp, ep"),
        ("--network", "0", "bandwidth '0' is not positive"),
        ("--message", "soon", "time 'soon'"),
        ("--usable", "0", "--usable '0'"),
        ("--usable", "200%", "--usable '200%'"),
        ("-d", "1m", "was trained for 163840"),
        ("--memory", "-3G", "memory '-3G'"),
        ("--tflops", "0", "tflops '0'"),
        ("-ctk", "fp4", "-ctk 'fp4'"),
    ):
        assert expected in refused(*H20, flag, value), flag
    two = (*H20[:-1], "2x H20")
    assert "expected one device; --devices says how many" in refused(*two)
    llama = ("roofline", "walls", "llama-3.1-8b", "--host", "H20")
    assert "has no experts to divide" in refused(*llama, "--layout", "ep")
    assert "K/V capacity from" in good(*llama)
    assert "its memory is not known" in refused(
        "roofline", "walls", "llama-3.1-8b", "--bandwidth", "400", "--tflops", "100"
    )


@pytest.mark.parametrize("name", ["stages", "levels", "emulate"])
def test_examples_in_every_format(name: str) -> None:
    for output in ("table", "json", "jsonl", "csv", "md"):
        assert good("roofline", name, "-o", output)
    assert "No such file" in refused("roofline", name, "none.toml")


def test_a_program_of_ones_own(tmp_path: Path) -> None:
    """The block that the page shows: a measured stage, and a change that removes all its cost."""
    page = (ROOT / "docs" / "roofline.md").read_text(encoding="utf-8")
    block = page.split("```toml\n")[1].split("```")[0]
    file = tmp_path / "x.toml"
    file.write_text(block, encoding="utf-8")
    data = json.loads(good("roofline", "stages", file, "-o", "json"))
    assert data["seconds"] == 0.0071
    assert data["changes"][0]["gain_at_most"] == pytest.approx(0.0071 / (0.45 * 6.1 / 1008))
    file.write_text(block.replace("bytes = 0.45", "bytes = 0, instructions = 0"), encoding="utf-8")
    assert "no limit" in good("roofline", "stages", file)
    assert "NaN" not in good("roofline", "stages", file, "-o", "json")


def test_npus_and_emulation_say_what_was_published() -> None:
    levels = good("roofline", "levels")
    assert "XDNA 1: fuse up to one hop, then stop" in levels
    assert "XDNA 2: fuse up to fused, then stop" in levels
    assert "OI* = 0.56 FLOP a streamed byte" in good("roofline", "emulate")
