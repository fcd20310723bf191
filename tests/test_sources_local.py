"""Paths, words of the catalogue, and the one function that takes them all."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from model_files import mlx_files, small_gguf, split_gguf
from source_tools import Place

from tokcast.predictor import catalogue
from tokcast.predictor.errors import InputError
from tokcast.predictor.sources import open_model


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(small_gguf())
    assert open_model(str(path)).metadata["general.name"] == "small"
    assert open_model("~/m.gguf", environ={"HOME": str(tmp_path)}).source == str(path)


def test_a_part_brings_its_siblings(tmp_path: Path) -> None:
    for number, body in enumerate(split_gguf(3), 1):
        (tmp_path / f"m-0000{number}-of-00003.gguf").write_bytes(body)
    for name in ("m-00001-of-00003.gguf", "m-00003-of-00003.gguf"):
        assert len(open_model(str(tmp_path / name)).tensors) == 3
    assert open_model(str(tmp_path)).n_parts == 3


def test_a_folder_with_one_model_is_that_model(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.put("f/sub/m.gguf", small_gguf())
    place.put("f/mmproj-m.gguf", b"x")
    place.put("f/README.md", b"x")
    assert place.open("~/f").metadata["general.name"] == "small"


def test_a_file_that_may_not_be_looked_at_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "m.gguf").write_bytes(small_gguf())
    (tmp_path / "locked.gguf").write_bytes(b"")
    looked_at = os.stat

    def stat(path: str | os.PathLike[str], **kwargs: object) -> os.stat_result:
        if "locked" in str(path):
            raise PermissionError(13, "Permission denied", str(path))
        return looked_at(path, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "stat", stat)
    assert open_model(str(tmp_path)).metadata["general.name"] == "small"


def test_a_folder_with_several_models_lists_them(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for quant in ("Q4_K_M", "Q8_0", "evil\x1b[2J"):
        place.put(f"f/m-{quant}.gguf", small_gguf())
    words = r"expected one model, found 3: m-Q4_K_M.gguf, m-Q8_0.gguf, m-evil\\x1b\[2J.gguf; give"
    with pytest.raises(InputError, match=words):
        place.open("~/f")


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({}, "nothing"),
        ({"a.txt": b"", "b.bin": b""}, "a.txt, b.bin"),
        ({"m-00001-of-00002.gguf": b"", "a.txt": b""}, "m-00001-of-00002.gguf"),
        ({"model.safetensors": b""}, "model.safetensors"),
    ],
)
def test_a_folder_without_a_model_says_what_is_in_it(
    tmp_path: Path, files: dict[str, bytes], found: str
) -> None:
    for name, body in files.items():
        (tmp_path / name).write_bytes(body)
    with pytest.raises(InputError, match=rf"expected a \.gguf file .*; found {found}$"):
        open_model(str(tmp_path))


def test_an_mlx_model_is_its_folder_or_a_file_of_it(tmp_path: Path) -> None:
    for name, body in mlx_files().items():
        (tmp_path / name).write_bytes(body)
    header = open_model(str(tmp_path))
    assert header.format == "mlx"
    for name in ("config.json", "model-00001-of-00002.safetensors"):
        assert open_model(str(tmp_path / name)) == header


def test_a_folder_of_very_many_files_is_not_walked_to_the_end(tmp_path: Path) -> None:
    deep = tmp_path / "a/b/c/d/e"
    deep.mkdir(parents=True)
    (deep / "m.gguf").write_bytes(small_gguf())
    with pytest.raises(InputError, match="found nothing"):
        open_model(str(tmp_path))


def test_a_word_of_the_catalogue_is_its_model() -> None:
    name = catalogue.names()[0]
    assert open_model(f"{name}@Q8_0") == catalogue.header(name, "Q8_0")
    header = open_model(name)
    assert header.tensors == catalogue.header(name, "Q4_K_M").tensors
    assert header.warnings[-1] == (
        f"no file type given, so this is {name}@Q4_K_M; @FILETYPE names another"
    )


def test_a_model_published_quantized_is_taken_so() -> None:
    header = open_model("gpt-oss-20b")
    assert header.tensors == catalogue.header("gpt-oss-20b", "MXFP4").tensors
    assert "so this is gpt-oss-20b@MXFP4_MOE" in header.warnings[-1]


def test_a_model_of_another_s_shape_says_so() -> None:
    note = "llama-3.3-70b has the shape of llama-3.1-70b, by whose name it goes"
    assert note in open_model("llama-3.3-70b@Q4_K_M").warnings
    assert note in open_model("llama-3.3-70b").warnings
    # More words and another case are the same model.
    assert open_model("Llama-3.1-70B-Instruct@Q4_K_M").warnings == ()


def test_a_word_that_is_nothing_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"'lama-3\.1-8x': no such file.*llama-3\.1-8b.*owner/repo"
    ):
        Place(tmp_path).open("lama-3.1-8x")
    with pytest.raises(InputError, match=r"llama-3\.1-8b"):
        Place(tmp_path).open("lama-3.1-8x@Q4_K_M")


def test_a_local_file_needs_no_http_client(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(small_gguf())
    script = (
        "import sys; from tokcast.predictor.sources import open_model; "
        f"open_model({str(path)!r}); open_model('llama-3.1-8b@Q4_K_M'); "
        "print([m for m in ('httpx', 'ssl', 'platformdirs', 'tempfile') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=os.environ, check=True
    )
    assert done.stdout == "[]\n"
