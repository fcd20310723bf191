"""The API gives what the command line gives, in the documented form."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from cli_tools import good, save, small
from small_models import header

pytest.importorskip("fastapi", reason="the web page needs fastapi and uvicorn")

from web_tools import LLAMA, QWEN, Site, problem, site

from tokcast.cli.web.config import Config
from tokcast.predictor.gguf_write import write_gguf

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def server() -> Iterator[Site]:
    with site() as found:
        yield found


def test_predict_gives_what_the_command_prints(server: Site) -> None:
    shown = json.loads(good("predict", LLAMA["model"], "--host", "RTX 4090", "-o", "json"))
    assert server.post("predict", LLAMA).json() == shown


def test_predict_takes_lengths_types_and_a_host_by_numbers(server: Site) -> None:
    flags = ["-p", "1024", "-n", "64", "-d", "0,8192", "-ctk", "q8_0", "-ctv", "q8_0"]
    numbers = ["--bandwidth", "800", "--memory", "16G"]
    shown = json.loads(
        good("predict", LLAMA["model"], "--host", "RTX 4090", *flags, *numbers, "-o", "json")
    )
    body = {
        **LLAMA,
        "n_prompt": [1024],
        "n_gen": [64],
        "n_depth": [0, 8192],
        "type_k": "Q8_0",
        "type_v": "Q8_0",
        "bytes_per_s": 800e9,
        "memory_bytes": 16 * 2**30,
    }
    assert server.post("predict", body).json() == shown


def test_several_cards_are_laid_out_as_the_command_does(server: Site) -> None:
    two = {**QWEN, "host": "2x RTX 3090"}
    shown = json.loads(good("predict", two["model"], "--host", two["host"], "-o", "json"))
    assert shown["placement"]["flags"]
    assert server.post("predict", two).json() == shown
    (r,) = server.post("compare", {"pairs": [two]}).json()["results"]
    assert [d["name"] for d in r["devices"]] == ["CUDA0", "CUDA1", "main memory"]
    assert sum(d["need_bytes"] for d in r["devices"]) == r["prediction"]["memory"]["need_bytes"]
    said = problem(server.post("predict", {**two, "model": "llama-3.1-8b@mlx-4bit"}), 400)
    assert "expected a GGUF model to place over devices" in said


def test_predict_gives_the_energy_that_the_command_prints(server: Site) -> None:
    flags = ["--energy", "--price", "0.3", "--grid", "DE"]
    shown = json.loads(good("predict", LLAMA["model"], "--host", "RTX 4090", *flags, "-o", "json"))
    body = {**LLAMA, "energy": True, "price_per_kwh": 0.3, "grid": "DE"}
    told = server.post("predict", body).json()
    assert told == shown
    bill = told["energy"]["thousand_answers"]
    assert bill["cost"] == pytest.approx(0.3 * bill["joules"] / 3.6e6)
    assert all(p["energy"]["joules_per_token"] > 0 for p in told["predictions"])
    limited = ["--power-limit", "250"]
    shown = json.loads(
        good("predict", LLAMA["model"], "--host", "RTX 4090", *limited, "-o", "json")
    )
    assert server.post("predict", {**LLAMA, "power_limit_w": 250}).json() == shown


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"grid": "XX"}, 400, "expected grams of CO2 a kWh"),
        ({"grid": ""}, 422, "grid"),
        ({"price_per_kwh": -0.3}, 422, "price_per_kwh"),
        ({"price_per_kwh": "0.3"}, 422, "price_per_kwh"),
        ({"energy": "yes"}, 422, "energy"),
        ({"power_limit_w": 5}, 400, "expected 135 to 675 W"),
        ({"energy": True, "host": "2x RTX 4090"}, 400, "on one device"),
        ({"power_limit_w": 40, "host": "M4 Max 40-core"}, 400, "no limit was measured"),
    ],
)
def test_energy_that_makes_no_sense_is_told_in_one_line(
    server: Site, body: dict[str, object], status: int, words: str
) -> None:
    assert words in problem(server.post("predict", {**LLAMA, **body}), status)


def test_compare_has_the_energy_of_one_device_and_none_of_several(server: Site) -> None:
    pairs = [LLAMA, {**LLAMA, "host": "2x RTX 3090"}, {**LLAMA, "host": "M4 Max 40-core"}]
    found = server.post("compare", {"pairs": pairs, "price_per_kwh": 0.3, "grid": "381"}).json()
    one, two, apple = (r["prediction"] for r in found["results"])
    assert one["energy"]["thousand_answers"]["grid"] == "381 g/kWh"
    assert "energy" not in two
    assert apple["predictions"][0]["energy"]["meter"] == "soc"


def test_grids_have_their_source(server: Site) -> None:
    found = {g["code"]: g for g in server.get("grids").json()["grids"]}
    assert found["DE"]["grams_per_kwh"] == pytest.approx(381, abs=1)
    assert "Ember" in found["DE"]["source"]


def test_a_curve_goes_through_the_prediction(server: Site) -> None:
    two = {**LLAMA, "host": "2x RTX 3090"}
    body = {"pairs": [LLAMA, QWEN, two], "n_depth": 0, "n_gen": 1}
    for r in server.post("compare", body).json()["results"]:
        for p in r["prediction"]["predictions"]:
            curve = r["depth"][p["phase"]]
            assert curve["tok_per_s"][0] == pytest.approx(p["tok_per_s"], rel=1e-9)
            assert curve["low"][0] == pytest.approx(p["low"], rel=1e-9)
            assert curve["n_depth"][0] == 0
            assert all(a >= b for a, b in pairwise(curve["tok_per_s"]))


def test_compare_tells_everything_the_page_shows(server: Site) -> None:
    body = {"pairs": [LLAMA], "n_depth": 4096, "look": {"theme": "dark", "width": 600}}
    data = server.post("compare", body).json()
    (r,) = data["results"]
    assert len(r["explanation"]) == 6
    assert {p["kind"] for p in r["roofline"]["points"]} >= {"phase", "component"}
    assert [d["name"] for d in r["devices"]] == ["card", "main memory"]
    for ledger in r["ledger"]:
        assert sum(row["seconds"] for row in ledger["rows"]) == pytest.approx(ledger["seconds"])
    for drawing in data["figures"].values():
        root = ET.fromstring(drawing)
        assert root.tag == f"{SVG}svg"
        assert root.get("width") == "600"


def test_measured_points_stand_beside_predicted_ones(server: Site) -> None:
    body = {"pairs": [{"model": "gpt-oss-20b@MXFP4_MOE", "host": "RTX 4090"}]}
    (r,) = server.post("compare", body).json()["results"]
    measured = [p for p in r["roofline"]["points"] if p["kind"] == "measured"]
    assert {p["phase"] for p in measured} == {"decode", "prefill"}
    assert all(p["flops_per_s"] > 0 for p in measured)


def test_hosts_are_listed_shown_and_searched(server: Site) -> None:
    found = server.get("hosts", params={"text": "rtx 3090"}).json()["hosts"]
    assert [h["name"] for h in found] == [
        "NVIDIA GeForce RTX 3090",
        "NVIDIA GeForce RTX 3090 Ti",
    ]
    brief = server.get("hosts", params={"text": "rtx 3090", "brief": "true"}).json()["hosts"]
    assert brief[0] == ["NVIDIA GeForce RTX 3090", found[0]["bytes_per_s"], [24 * 2**30]]
    shown = server.get("hosts/show", params={"name": "4090"}).json()
    assert shown == json.loads(good("hosts", "show", "4090", "-o", "json"))


def test_models_and_status(server: Site) -> None:
    models = server.get("models").json()
    assert {"name": "llama-3.1-8b", "title": "Llama 3.1 8B"} in models["models"]
    assert "Q4_K_M" in models["file_types"]
    assert models["local"] == []
    assert server.get("status").json()["public"] is False


def test_a_dropped_header_is_a_model(server: Site, tmp_path: Path) -> None:
    path = small(tmp_path / "small.gguf")
    shown = json.loads(good("inspect", path, "-o", "json"))
    answer = server.ask(
        "POST", "inspect/upload", params={"name": "small.gguf"}, content=path.read_bytes()
    ).json()
    address = answer.pop("address")
    assert answer["groups"] == shown["groups"]
    assert answer["model"]["source"] == "small.gguf"
    assert server.post("inspect", {"model": address}).json()["groups"] == shown["groups"]
    told = json.loads(good("predict", path, "--host", "RTX 4090", "-o", "json"))
    predicted = server.post("predict", {"model": address, "host": "RTX 4090"}).json()
    assert predicted["predictions"] == told["predictions"]


def test_what_is_no_gguf_is_refused(server: Site) -> None:
    answer = server.ask("POST", "inspect/upload", content=b"PK\x03\x04 a zip")
    assert "expected a GGUF file" in problem(answer, 400)


def test_a_hostile_name_stays_text(server: Site, tmp_path: Path) -> None:
    hostile = '"><script>alert(1)</script>&\x1b[2J\x00'
    path = small(tmp_path / "evil.gguf", name=hostile)
    answer = server.ask("POST", "inspect/upload", content=path.read_bytes()).json()
    pair = {"model": answer["address"], "host": "RTX 4090"}
    data = server.post("compare", {"pairs": [pair], "look": {"theme": "light", "width": 500}})
    for drawing in data.json()["figures"].values():
        root = ET.fromstring(drawing)
        tags = {element.tag.removeprefix(SVG) for element in root.iter()}
        assert tags <= {"svg", "title", "desc", "rect", "line", "path", "text", "circle", "g"}
    exported = server.post("export/decode.svg", {"pairs": [pair]}).text
    assert "<script" not in exported
    assert "\x1b" not in exported


def test_roofline_as_data_and_as_a_drawing(server: Site) -> None:
    query = {"model": "gemma-3-27b@Q4_K_M", "host": "RTX 3090", "n_depth": 4096}
    data = server.get("roofline", params=query).json()
    assert data["slopes"][0]["bytes_per_s"] == 936e9
    ridge = max(c["flops_per_s"] for c in data["ceilings"]) / 936e9
    assert data["ridge_flops_per_byte"] == pytest.approx(ridge)
    decode = next(p for p in data["points"] if p["kind"] == "phase" and p["phase"] == "decode")
    assert decode["bound"] == "memory"
    assert decode["flops_per_byte"] == pytest.approx(decode["flops"] / decode["bytes"])
    drawn = server.get("roofline.svg", params={**query, "theme": "dark"})
    assert drawn.headers["content-type"].startswith("image/svg+xml")
    assert ET.fromstring(drawn.text).tag == f"{SVG}svg"


def test_analyze_counts_by_hand(server: Site) -> None:
    body = {"m": 1, "n": 4096, "k": 4096, "type": "q8_0", "host": "RTX 4090"}
    data = server.post("analyze", body).json()
    weights = 4096 * 4096 // 32 * 34
    assert data["kind"] == "GEMV"
    assert data["bytes"] == {"weights": weights, "input": 4 * 4096, "output": 4 * 4096}
    assert data["flops"] == 2 * 4096 * 4096
    assert data["memory_seconds"] == pytest.approx((weights + 2 * 4 * 4096) / 1008e9)
    assert data["bound_seconds"] == data["memory_seconds"]
    assert data["bound"] == "memory"
    assert data["measured"] is None
    assert data["measured_note"] == "not asked for"


def test_analyze_measures_what_this_machine_can(server: Site) -> None:
    body = {"m": 8, "n": 64, "k": 64, "type": "F32", "measure": True}
    data = server.post("analyze", body).json()
    assert data["measured_note"] == ""
    measured = data["measured"]
    assert len(measured["seconds"]) >= 1
    assert measured["flops_per_s"] == pytest.approx(data["flops"] / measured["median_seconds"])
    notes = {
        "only F32": {**body, "type": "F16"},
        "larger than": {"m": 1024, "n": 65536, "k": 4096, "type": "F32", "measure": True},
        "leave host out": {**body, "host": "RTX 4090"},
    }
    for words, asked in notes.items():
        other = server.post("analyze", asked).json()
        assert other["measured"] is None
        assert words in other["measured_note"]


def test_analyze_refuses_what_no_block_fits(server: Site) -> None:
    body = {"m": 1, "n": 16, "k": 100, "type": "Q4_K", "host": "RTX 4090"}
    assert "whole Q4_K blocks of 256" in problem(server.post("analyze", body), 400)
    assert "expected one of" in problem(server.post("analyze", {**body, "type": "Q9"}), 400)


def test_sweep_is_every_shape_by_every_type(server: Site) -> None:
    body = {"shapes": [{"m": 1}, {"m": 512}], "types": ["F16", "Q4_K"], "host": "RTX 3090"}
    rows = server.post("sweep", body).json()["rows"]
    assert [(r["m"], r["type"]) for r in rows] == [
        (1, "F16"),
        (512, "F16"),
        (1, "Q4_K"),
        (512, "Q4_K"),
    ]
    assert [r["bound"] for r in rows] == ["memory", "near the ridge", "memory", "compute"]


def test_recommend_takes_the_most_bits_that_fit(server: Site) -> None:
    body = {"model": "llama-3.1-8b", "host": "RTX 3060 12GB", "n_context": 4096}
    data = server.post("recommend", body).json()
    assert data["best"] == "Q8_0"
    by_type = {o["file_type"]: o for o in data["options"]}
    assert by_type["F16"]["fits"] is False
    assert "TQ1_0" not in by_type
    assert "MXFP4_MOE" not in by_type
    bits = [o["bits_per_weight"] for o in data["options"]]
    assert bits == sorted(bits)
    wanted = by_type["Q6_K"]["decode"]["tok_per_s"]
    faster = server.post("recommend", {**body, "at_least_tok_per_s": wanted}).json()
    best = by_type[faster["best"]]
    assert best["decode"]["tok_per_s"] >= wanted
    assert best["bits_per_weight"] < 8.5
    none = server.post("recommend", {**body, "at_least_tok_per_s": 1e6}).json()
    assert none["best"] is None
    assert "none that fits reaches" in none["why"]
    tiny = server.post("recommend", {**body, "memory_bytes": 2**28}).json()
    assert tiny["why"] == "no file type of this model fits this host"


def test_formats_are_what_recommend_prints(server: Site) -> None:
    flags = ("--host", "RTX 4090", "--objective", "speed", "-c", "8k", "--kv", "FP8", "-o", "json")
    shown = json.loads(good("recommend", "llama-3.1-8b", *flags))
    body = {
        "model": "llama-3.1-8b",
        "host": "RTX 4090",
        "objective": "speed",
        "n_context": 8192,
        "kv_format": "FP8",
    }
    data = server.post("formats", body).json()
    assert {**data, "file_type": None} == {**shown, "file_type": None}
    told = problem(server.post("formats", {**body, "plan": "none"}), 400)
    assert "expected one of fp16_baseline" in told
    assert "of the catalogue" in problem(server.post("formats", {**body, "model": "a/b"}), 400)
    with site(Config(public=True)) as shared:
        assert "name a host" in problem(shared.post("formats", {"model": "llama-3.1-8b"}), 403)


def test_select_gives_what_the_command_prints(server: Site) -> None:
    flags = ["--host", "RTX 3060 12GB", "--min-decode", "30", "-c", "16k", "-o", "json"]
    shown = json.loads(good("select", "llama-3.1-8b", "qwen3-14b", *flags))
    body = {
        "models": ["llama-3.1-8b", "qwen3-14b"],
        "host": "RTX 3060 12GB",
        "min_decode_tok_per_s": 30,
        "n_context": 16384,
        "limit": 3,
    }
    data = server.post("select", body).json()
    assert data["pick"] == shown["pick"]
    assert (data["n_candidates"], data["n_feasible"]) == (
        shown["n_candidates"],
        shown["n_feasible"],
    )
    assert data["candidates"] == shown["candidates"][:3]


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"models": ["/etc/passwd"], "host": "RTX 4090"}, 400, "model of the catalogue"),
        ({"models": ["owner/repo"], "host": "RTX 4090"}, 400, "model of the catalogue"),
        ({"host": "/etc/hosts.toml"}, 400, "name of a chip"),
        ({"host": "RTX 4090", "sort": "beauty"}, 400, "beauty"),
        ({"host": "RTX 4090", "workload": "nap"}, 400, "nap"),
        ({"host": "RTX 4090", "limit": 0}, 422, "greater than or equal to 1"),
        ({"host": "RTX 4090", "min_decode_tok_per_s": -1}, 422, "greater than or equal to"),
    ],
)
def test_wishes_that_are_none_are_told(
    server: Site, body: dict[str, object], status: int, words: str
) -> None:
    assert words in problem(server.post("select", body), status)


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"model": "nope@Q4_K_M", "host": "RTX 4090"}, 400, "no model 'nope' in the catalogue"),
        ({"model": "llama-3.1-8b@Q4_K_M", "host": "RTX 9999"}, 400, "is not a known chip"),
        ({"model": "llama-3.1-8b@Q4_K_M", "host": "x\x1b[2J"}, 400, "name of a chip"),
        ({"model": "llama-3.1-8b@Q4_K_M", "host": "/etc/hosts.toml"}, 400, "name of a chip"),
        ({"model": "/etc/passwd", "host": "RTX 4090"}, 400, "owner/repo"),
        ({"model": "llama-3.1-8b@mlx-4bit", "host": "RTX 4090", "backend": "CUDA"}, 400, "MLX"),
        ({"host": "RTX 4090"}, 422, "body.model: Field required"),
        ({**LLAMA, "n_prompt": [0]}, 422, "greater than or equal to 1"),
        ({**LLAMA, "n_prompt": [], "n_gen": []}, 400, "nothing to predict"),
        ({**LLAMA, "bytes_per_s": 0}, 422, "greater than or equal to 1000000"),
        ({**LLAMA, "surprise": 1}, 422, "Extra inputs"),
        ({**LLAMA, "n_depth": [1] * 17}, 422, "at most 16"),
    ],
)
def test_bad_input_is_told_in_one_line(
    server: Site, body: dict[str, object], status: int, words: str
) -> None:
    assert words in problem(server.post("predict", body), status)


def test_numbers_that_are_none_are_refused(server: Site) -> None:
    text = '{"model": "llama-3.1-8b@Q4_K_M", "host": "RTX 4090", "bytes_per_s": NaN}'
    answer = server.ask(
        "POST", "predict", content=text, headers={"content-type": "application/json"}
    )
    assert "finite" in problem(answer, 422)


def test_paths_and_methods_that_are_none(server: Site) -> None:
    assert problem(server.get("nope"), 404) == "Not Found"
    answer = server.get("predict")
    assert problem(answer, 405) == "Method Not Allowed"
    assert answer.headers["allow"] == "POST"


def test_a_vocabulary_is_no_model(server: Site, tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.gguf"
    only = header("llama", {"block_count": 1})
    write_gguf(path, only.metadata, (), sparse_data=False)
    answer = server.ask("POST", "inspect/upload", content=path.read_bytes())
    pair = {"model": answer.json()["address"], "host": "RTX 4090"}
    assert "holds no weights" in problem(server.post("predict", pair), 400)


def test_the_description_covers_every_route(server: Site) -> None:
    found = server.client.get("/openapi.json").json()
    assert set(found["paths"]) == {
        f"/api/v1/{name}"
        for name in (
            *("status", "models", "hosts", "hosts/show", "hosts/this", "predict", "compare"),
            *("inspect", "inspect/upload", "roofline", "roofline.svg", "figure/{name}.svg"),
            *("export/{name}.svg", "worksheet", "export/worksheet.json"),
            *("export/worksheet.{form}", "analyze", "sweep", "recommend", "formats"),
            "select",
            "grids",
            *("nvml/status", "nvml/stream", "meters/status", "meters/stream"),
        )
    }
    assert all(op["summary"] for path in found["paths"].values() for op in path.values())


def test_models_of_several_parts_are_found_in_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    small(folder / "one.gguf")
    save(folder / "two.gguf", header("llama", {"block_count": 1}))
    with site(Config(folders=(folder,))) as found:
        assert found.get("models").json()["local"] == ["file:one.gguf", "file:two.gguf"]
        pair = {"model": "file:one.gguf", "host": "RTX 4090"}
        assert found.post("predict", pair).json()["model"]["name"] == "Small"
