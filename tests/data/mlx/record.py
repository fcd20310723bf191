"""Write down what mlx-lm itself makes of a config, for the tests of the MLX reader.

    python tests/data/mlx/record.py [NAME ...]        # needs mlx and mlx-lm

Each NAME.json holds a `config` and how to `quantize`; `tensors` is filled in: rows of name with
`*` for the block number, safetensors dtype, shape, and the blocks it stands for. MLX arrays are
lazy, so a model of 700 B parameters takes a second and no memory. The folders `tiny-*` are saved
by the library; of the weights only the header is kept.
"""

import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
import mlx_models


def json_of(recording):
    """Return JSON with a line for each key of the config and for each row of tensors."""
    parts = []
    for key, value in recording.items():
        lines = [f"  {json.dumps(row)}" for row in value] if key == "tensors" else []
        if key == "config":
            lines = [f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in value.items()]
        left, right = ("[", "]") if key == "tensors" else ("{", "}")
        text = "\n".join([left, ",\n".join(lines), f" {right}"]) if lines else json.dumps(value)
        parts.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def record(name):
    """Fill in the tensors of a recording."""
    path = mlx_models.FOLDER / f"{name}.json"
    recording = json.loads(path.read_text())
    config = {k: v for k, v in recording["config"].items() if k != "quantization"}
    model, recording["config"] = mlx_models.build(config, recording["quantize"])
    recording["tensors"] = mlx_models.compressed(mlx_models.listing_of(model))
    path.write_text(json_of(recording))


def record_tiny(name):
    """Save a tiny model and keep its config and the header of its weights."""
    with tempfile.TemporaryDirectory() as folder:
        mlx_models.save_tiny(name, Path(folder))
        data = (Path(folder) / "model.safetensors").read_bytes()
        config = (Path(folder) / "config.json").read_text()
    kept = mlx_models.FOLDER / name
    kept.mkdir(exist_ok=True)
    (kept / "model.safetensors").write_bytes(data[: 8 + int.from_bytes(data[:8], "little")])
    (kept / "config.json").write_text(config + "\n")


if __name__ == "__main__":
    for chosen in sys.argv[1:] or [*mlx_models.recordings(), *mlx_models.TINY]:
        (record_tiny if chosen in mlx_models.TINY else record)(chosen)
