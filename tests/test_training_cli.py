"""`tokcast energy train`, `train-fit` and `sweep` as people type them."""

import importlib.util
import json
import os
import re
from pathlib import Path

import pytest
from cli_tools import good, refused, run

from tokcast.cli.energy_recipe import RECIPE
from tokcast.measurements import train_sweep
from tokcast.measurements.train_sweep import FLOPS_WANTED, left, plan
from tokcast.measurements.training_runs import TrainRun, append, read
from tokcast.predictor import catalogue
from tokcast.predictor.errors import InputError
from tokcast.predictor.training.named import from_catalogue
from tokcast.predictor.training.work import flops

BERT = {
    "model_type": "bert",
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "vocab_size": 30522,
    "max_position_embeddings": 512,
}
A100 = ("--host", "A100 PCIe 80GB")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(BERT))
    return path


def train(*args: str | Path) -> dict[str, float]:
    found: dict[str, float] = json.loads(good("energy", "train", *args, "-o", "json"))
    return found


def test_a_config_its_folder_and_a_recipe_say_the_same(config: Path) -> None:
    recipe = config.with_name("run.toml")
    recipe.write_text(
        'model = "config.json"\nhost = "A100 PCIe 80GB"\nbatch = 32\nprecision = "tf32"\n'
        "recompute = true\npower_limit = 225\n"
    )
    flags = (*A100, "-b", "32", "--precision", "tf32", "--recompute", "--power-limit", "225")
    typed = train("--config", config, *flags)
    assert train("--config", config.parent, *flags) == typed
    assert train("--config", recipe) == typed
    assert typed["power_limit_w"] == 225
    # What is typed wins over the recipe.
    assert train("--config", recipe, "--batch", "64")["n_batch"] == 64


def test_more_devices_are_faster_and_cost_no_less(config: Path) -> None:
    one = train("--config", config, *A100, "--batch", "64")
    for strategy in ("fsdp", "tp", "dp", "tp2+pp2"):
        four = train(
            "--config", config, *A100, "--batch", "64", "--devices", "4", "--strategy", strategy
        )
        assert one["seconds"] / 4 <= four["seconds"] < one["seconds"], strategy
        assert four["joules"] >= one["joules"] * 0.999, strategy
        assert 0.25 < four["efficiency"] <= 1, strategy
    counted = train("--config", config, "--host", "4x A100 PCIe 80GB", "--batch", "64")
    assert counted["n_devices"] == 4
    assert counted["strategy"] == "fsdp4"


def test_a_slower_link_loses_more(config: Path) -> None:
    shared = ("--config", config, *A100, "--devices", "4", "--strategy", "tp")
    fast, slow = (train(*shared, "--link", rate) for rate in ("300", "5"))
    assert slow["efficiency"] < fast["efficiency"]
    assert slow["seconds"] > fast["seconds"]


def test_a_measured_speedup_takes_the_place_of_a_modelled_one(config: Path) -> None:
    shared = ("--config", config, *A100, "--devices", "4", "--strategy", "tp")
    found = train(*shared, "--speedup", "3")
    assert found["efficiency"] == 0.75
    said = good("energy", "train", *shared, "--speedup", "3")
    assert "3.00 (given)" in said
    assert "is modelled" not in said


def test_every_format(config: Path) -> None:
    shared = ("energy", "train", "--config", config, *A100)
    assert "Board power" in good(*shared)
    assert good(*shared, "-o", "md").startswith("| a step | value |")
    header, row = good(*shared, "-o", "csv").splitlines()
    assert header.startswith("host,n_devices,strategy")
    assert row.startswith("NVIDIA A100 PCIe 80GB,1,none")
    assert json.loads(good(*shared, "-o", "jsonl"))["fits"] is True


def test_no_meter_is_said_of_a_processor(config: Path) -> None:
    said = good("energy", "train", "--config", config, "--host", "EPYC 9454P", "--watts", "20")
    assert "Power is stated, not metered: 20 W a device" in said
    assert "20 W (stated)" in said
    assert "a factor of 2 either way, assumed" in said
    assert not train("--config", config, "--host", "EPYC 9454P")["is_metered"]


def test_what_does_not_fit_is_a_no_with_a_way_out() -> None:
    shared = ("energy", "train", "--host", "RTX 4090", "--length", "2048")
    small = run(*shared, "--config", "llama-3.2-1b", "--batch", "512")
    assert small.code == 1
    assert "Does not fit" in small.out
    words = small.out.split("--batch ")[1].split()[0]
    fitting = run(*shared, "--config", "llama-3.2-1b", "--batch", words)
    over = run(*shared, "--config", "llama-3.2-1b", "--batch", str(int(words) + 1))
    assert (fitting.code, over.code) == (0, 1)
    large = run(*shared, "--config", "llama-3.1-70b", "--batch", "1")
    assert large.code == 1
    assert "whatever the batch; expected more devices" in " ".join(large.out.split())


BAD = (
    (("--devices", "0"), r"--devices '0': expected one number of at least 1"),
    (("--devices", "99999999"), r"--devices 99999999: expected a number from 1 to"),
    (("--devices", "2", "--strategy", "zero"), r"--strategy 'zero': expected none, fsdp, tp"),
    (("--devices", "4", "--strategy", "tp2"), r"--strategy tp2 takes 2 devices: expected 4"),
    (("--batch", "-1"), r"--batch '-1': expected whole numbers"),
    (("--batch", "0"), r"--batch '0': expected one number of at least 1"),
    (("--batch", "7", "--devices", "2"), r"--batch 7: .*expected a multiple of 2"),
    (("--length", "513"), r"--length 513: the model has 512 positions"),
    (("--precision", "int8"), r"--precision 'int8': expected one of"),
    (("--power-limit", "10"), r"--power-limit 10: .*expected 90 to 300"),
    (("--power-limit", "nan"), r"--power-limit 'nan': expected watts"),
    (("--watts", "-5"), r"--watts '-5': expected watts"),
    (("--link", "0", "--devices", "2"), r"bandwidth '0' is not positive"),
    (("--devices", "16", "--strategy", "tp"), r"--strategy tp16: the model has 12 blocks"),
    (("--steps", "many"), r"--steps 'many': expected"),
    (("--host", "M4 Max 40-core"), r"no training on such a chip was measured"),
    (("--host", "EPYC 9454P", "--precision", "bf16"), r"a processor's runs are in fp32"),
    (("--host", "EPYC 9454P", "-t", "1000"), r"-t 1000: .* has 48 cores"),
    (("--host", "2x A100 PCIe 80GB", "--devices", "3"), r"--devices 3 with 2 in --host"),
    (("--speedup", "3", "--devices", "2"), r"--speedup 3: more than 2 device\(s\) can"),
    (("--speedup", "0"), r"--speedup '0': expected speedup over one device, a number above 0"),
    (("-o", "xml"), r"-o xml: unknown format"),
)


@pytest.mark.parametrize(("args", "said"), BAD)
def test_bad_flags_are_one_line(config: Path, args: tuple[str, ...], said: str) -> None:
    host = () if "--host" in args else A100
    assert re.search(said, refused("energy", "train", "--config", config, *host, *args))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1]", "no JSON object; expected a model's config.json"),
        ("{", "no JSON ("),
        ("[" * 100_000, "no JSON ("),
        (json.dumps(BERT | {"hidden_size": -768}), "hidden_size is -768; expected"),
        (json.dumps(BERT | {"vocab_size": "many"}), "vocab_size is 'many'; expected"),
    ],
)
def test_configs_that_cannot_be_are_one_line(config: Path, text: str, said: str) -> None:
    config.write_text(text)
    assert said in refused("energy", "train", "--config", config, *A100)


def test_a_recipe_with_a_field_nobody_knows(config: Path) -> None:
    recipe = config.with_name("run.toml")
    for text, said in (
        ("model='config.json'\nbatch_size=3", "unknown field 'batch_size'; expected model and"),
        ("batch=3", "model is missing; expected the path of its config.json"),
        ("model='config.json'\nrecompute='yes'", "recompute is 'yes'; expected true or false"),
        ("model='config.json'\nbatch=[3]", "batch is [3]; expected text or a number"),
        ("model=", "not a TOML recipe"),
    ):
        recipe.write_text(text)
        assert said in refused("energy", "train", "--config", recipe, *A100)
    assert "no-model: No such file" in refused("energy", "train", "--config", "no-model", *A100)
    assert "model" not in RECIPE


def test_models_of_the_catalogue_have_their_parameters() -> None:
    plain = 0
    for name in catalogue.names():
        try:
            shape = from_catalogue(name)
        except InputError:
            continue
        plain += 1
        assert shape.n_used <= shape.n_experts
        assert shape.n_multiplied <= shape.n_params + shape.n_vocab * shape.width
    assert plain > 120
    with pytest.raises(InputError, match=r"falcon-h1-3b: its blocks are no plain"):
        from_catalogue("falcon-h1-3b")


def test_a_plan_is_the_same_again_and_within_its_bounds() -> None:
    points = plan(60)
    assert points == plan(60)
    assert len(set(points)) == len(points) == 60 + 2 * 10
    alone = [p for p in points if p.n_devices == 1]
    assert all(FLOPS_WANTED[0] <= flops(p.shape, p.step) <= FLOPS_WANTED[1] for p in alone)
    assert {p.family for p in alone} == {"bert", "llama"}


def test_a_sweep_goes_on_behind_what_is_there(tmp_path: Path) -> None:
    path, points = tmp_path / "sweep.csv", plan(6)
    assert left(points, path) == points
    append(path, TrainRun(points[0], 0.5, 0.4, 0.6, 7, 1, "c (z)", 2, 1e11, 1e10, "2.6", "d"))
    assert left(points, path) == points[1:]


def test_a_run_costs_what_its_joules_cost() -> None:
    words = ("energy", "train", "--config", "llama-3.2-1b", *A100, "--price", "0.3", "--grid", "DE")
    told = json.loads(good(*words, "-o", "json"))
    assert told["cost"] == pytest.approx(0.3 * told["total_joules"] / 3.6e6)
    assert told["co2_grams"] == pytest.approx(
        told["grams_per_kwh"] * told["total_joules"] / 3.6e6, rel=1e-9
    )
    assert re.search(r"at 0\.3 a kWh, [\d.,]+ g CO2\s+\(DE, 381 g/kWh\)", good(*words))
    free = json.loads(good(*words[:-4], "-o", "json"))
    assert free["cost"] is None
    assert free["co2_grams"] is None
    assert "--price '0'" in refused(*words[:-4], "--price", "0")
    assert "--grid 'XX'" in refused(*words[:-4], "--grid", "XX")


def test_a_sweep_without_pytorch_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    said = refused("energy", "sweep", "--to", tmp_path / "s.csv")
    assert (
        said
        == 'PyTorch is not installed, expected it for a sweep; run: pip install "tokcast[train]"'
    )


def test_bad_sweeps(tmp_path: Path) -> None:
    assert "its folder is missing" in refused("energy", "sweep", "--to", tmp_path / "no" / "s.csv")
    assert "--points '0'" in refused("energy", "sweep", "--points", "0")
    assert "--points 9999: expected 1 to" in refused("energy", "sweep", "--points", "9999")
    assert "time 'soon'" in refused("energy", "sweep", "--budget", "soon")
    few = tmp_path / "few.csv"
    append(few, TrainRun(plan(1)[0], 0.5, 0.4, 0.6, 7, 1, "c (z)", 2, 1e11, 1e10, "2.6", "d"))
    assert "fewer than 10 points" in refused("energy", "train-fit", "--on", few)


def test_a_real_sweep_is_stopped_and_gone_on_with(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if importlib.util.find_spec("torch") is None:
        if os.environ.get("TOKCAST_REQUIRE_TORCH") == "1":
            pytest.fail("PyTorch is not installed, and TOKCAST_REQUIRE_TORCH=1")
        pytest.skip('PyTorch is not installed: pip install "tokcast[train]"')
    monkeypatch.setattr(train_sweep, "FLOPS_WANTED", (0, 4e8))
    monkeypatch.setattr(train_sweep, "MOST_SECONDS", 0.0)
    path = tmp_path / "sweep.csv"
    first = run("energy", "sweep", "--to", path, "--points", "1", "--budget", "1ms", "-o", "json")
    assert first.code == 1
    taken = json.loads(first.out)
    assert len(taken["taken"]) == 1
    assert taken["left"] == 2
    last = run("energy", "sweep", "--to", path, "--points", "1", "--budget", "2min")
    assert last.code == 0
    assert "2 points taken" in last.out
    rows = read(path)
    assert [r.point.strategy for r in rows] == ["none", "fsdp", "tp"]
    assert all(r.n_repeats >= 3 for r in rows)
