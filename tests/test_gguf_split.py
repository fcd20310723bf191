"""Split models: names, joining, and words for what does not fit."""

from pathlib import Path

import pytest

from tokcast.predictor.errors import InputError
from tokcast.predictor.gguf import read_gguf_file
from tokcast.predictor.gguf_split import join_splits, split_names
from tokcast.predictor.gguf_write import write_gguf
from tokcast.predictor.header import Header, Tensor, Value


def part(
    number: int, count: int = 3, *, tensors: tuple[str, ...] = (), total: int = 2, **more: Value
) -> Header:
    metadata = {"split.no": number, "split.count": count, "split.tensors.count": total, **more}
    rows = tuple(Tensor(name, (8,), "F32", 32) for name in tensors)
    return Header("gguf", metadata, rows, f"part {number}", n_header_bytes=100, warnings=())


# As llama-gguf-split --no-tensor-first-split cuts: the first part has no tensors.
PARTS = (
    part(0, architecture="llama"),
    part(1, tensors=("a",)),
    part(2, tensors=("b",)),
)


def test_names_of_all_parts() -> None:
    assert split_names("dir/m-00002-of-00003.gguf") == [
        "dir/m-00001-of-00003.gguf",
        "dir/m-00002-of-00003.gguf",
        "dir/m-00003-of-00003.gguf",
    ]
    assert split_names("https://h/m-00001-of-00001.gguf") == ["https://h/m-00001-of-00001.gguf"]
    assert len(split_names("m-00804-of-00804.gguf") or []) == 804


@pytest.mark.parametrize(
    "name",
    [
        "m.gguf",
        "m-00004-of-00003.gguf",
        "m-00000-of-00003.gguf",
        "m-0001-of-0002.gguf",
        "-of-.gguf",
    ],
)
def test_names_that_are_no_parts(name: str) -> None:
    assert split_names(name) is None


def test_joining_in_any_order() -> None:
    joined = join_splits([PARTS[2], PARTS[0], PARTS[1]], "model")
    assert [tensor.name for tensor in joined.tensors] == ["a", "b"]
    assert joined.metadata == PARTS[0].metadata
    assert (joined.source, joined.n_parts, joined.n_header_bytes) == ("model", 3, 300)


def test_a_whole_file_stays_as_it_is() -> None:
    whole = Header("gguf", {}, (), "x")
    alone = Header("gguf", {"split.no": 0, "split.count": 1}, (), "x")
    assert join_splits([whole], "y") is whole
    assert join_splits([alone], "y") is alone


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (PARTS[1:], r"^part 1: expected all 3 parts of a split model, found no part 1$"),
        ((part(6, 9),), r"all 9 parts .*, found no part 1, part 2, part 3, part 4 and 4 more$"),
        ((PARTS[0], PARTS[0], PARTS[1]), r"parts 1 to 3 once each, found part 1 again"),
        ((PARTS[0], PARTS[1], part(2, 4)), r"part 2: expected split\.count = 3 .*, found 4"),
        ((PARTS[0], Header("gguf", {}, (), "x")), r"^x: expected split\.count = 3 .*, found none"),
        ((*PARTS[:2], part(3)), r"split\.no = 0 to 2 in this part .*, found 3"),
        ((*PARTS[:2], part(-1)), r"found -1"),
        ((part(0, 1 << 63), PARTS[1]), r"split\.count = 1 to 65535 .*, found 9223372036854775808"),
        ((part(0, 0), PARTS[1]), r"split\.count = 1 to 65535 .*, found 0"),
        (
            (*PARTS[:2], part(2, tensors=("a",))),
            r"found a in another part too: parts of two models",
        ),
        (
            (*PARTS[:2], part(2)),
            r"^part 0: expected 2 tensors in all parts together, found 1: parts",
        ),
    ],
)
def test_parts_that_do_not_belong_together(parts: tuple[Header, ...], words: str) -> None:
    with pytest.raises(InputError, match=words):
        join_splits(parts, "model")


@pytest.mark.parametrize("value", ["\x1b[2J", 1.5, True, (1, 2)])
def test_odd_split_values_are_escaped(value: Value) -> None:
    odd = Header("gguf", {"split.no": value, "split.count": 3}, (), "x")
    with pytest.raises(InputError, match=r"^[ -~]+$"):
        join_splits([odd, PARTS[1]], "model")


def test_a_count_of_another_type_is_refused() -> None:
    odd = Header("gguf", {"split.count": "3"}, (), "x")
    with pytest.raises(InputError, match=r"split\.count = 1 to 65535 .*, found 3$"):
        join_splits([odd], "model")


def write_parts(folder: Path, count: int) -> list[Path]:
    """Write a model of `count` parts with one tensor each."""
    paths = [folder / f"m-{n + 1:05d}-of-{count:05d}.gguf" for n in range(count)]
    for number, path in enumerate(paths):
        metadata: dict[str, Value] = {
            "split.no": number,
            "split.count": count,
            "split.tensors.count": count,
        }
        write_gguf(path, metadata, [Tensor(f"blk.{number}.w", (8,), "F32", 32)])
    return paths


def test_any_part_finds_its_siblings(tmp_path: Path) -> None:
    paths = write_parts(tmp_path, 3)
    for path in paths:
        header = read_gguf_file(path)
        assert [t.name for t in header.tensors] == ["blk.0.w", "blk.1.w", "blk.2.w"]
        assert (header.source, header.n_parts, header.warnings) == (str(path), 3, ())


def test_a_model_of_804_parts(tmp_path: Path) -> None:
    assert len(read_gguf_file(write_parts(tmp_path, 804)[0]).tensors) == 804


def test_missing_files_are_named(tmp_path: Path) -> None:
    paths = write_parts(tmp_path, 3)
    paths[1].unlink()
    with pytest.raises(InputError, match=r"all 3 parts .*, found no m-00002-of-00003\.gguf$"):
        read_gguf_file(paths[0])


def test_a_part_under_another_name(tmp_path: Path) -> None:
    lone = write_parts(tmp_path, 3)[1].rename(tmp_path / "model.gguf")
    with pytest.raises(InputError, match=r"all 3 parts of a split model, found no part 1, part 3$"):
        read_gguf_file(lone)


def test_parts_of_other_models(tmp_path: Path) -> None:
    paths = write_parts(tmp_path, 2)
    paths[1].write_bytes(paths[0].read_bytes())
    with pytest.raises(InputError, match=r"m-00002.*parts 1 to 2 once each, found part 1 again"):
        read_gguf_file(paths[0])


def test_warnings_of_many_parts_are_summed_up(tmp_path: Path) -> None:
    paths = write_parts(tmp_path, 12)
    for path in paths:
        path.write_bytes(path.read_bytes()[:-32])
    warnings = read_gguf_file(paths[0]).warnings
    assert len(warnings) == 9
    assert warnings[0].startswith("part 1: the file ends at byte ")
    assert warnings[8] == "4 more warnings of this kind in other parts"
