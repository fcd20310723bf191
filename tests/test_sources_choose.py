"""Which file of a repository is meant."""

import pytest

from tokcast.predictor.sources.choose import choose, is_complete, models, quants


def _first(names: list[str], quant: str | None) -> str | None:
    choice = choose(names, quant)
    return None if choice is None else choice.files[0]


@pytest.mark.parametrize(
    ("names", "quant", "chosen"),
    [
        (["a-Q2_K.gguf", "a-Q4_K_M.gguf"], None, "a-Q4_K_M.gguf"),
        (["a-Q2_K.gguf", "a-q4_k_m.gguf"], None, "a-q4_k_m.gguf"),
        (["a-Q2_K.gguf", "a-Q8_0.gguf"], None, "a-Q8_0.gguf"),
        (["b.gguf", "a.gguf"], None, "b.gguf"),
        (["a-Q2_K.gguf", "a-Q8_0.gguf"], "q2_k", "a-Q2_K.gguf"),
        (["a-BF16.gguf", "a-F16.gguf"], "F16", "a-F16.gguf"),
        (["a-BF16.gguf"], "F16", "a-BF16.gguf"),
        (["a-IQ4_XS.gguf", "a-UD-Q4_K_XL.gguf"], "Q4_K_XL", "a-UD-Q4_K_XL.gguf"),
        (["Q8_0/a-Q8_0.gguf", "Q2_K/a.gguf"], "Q2_K", "Q2_K/a.gguf"),
        (["a-Q4_K_S.gguf"], "Q4_K", None),
        (["a-Q4_K_S.gguf"], "Q4.K_S", None),
        (["mmproj-Q4_K_M.gguf", "a-Q8_0.gguf"], None, "a-Q8_0.gguf"),
        (["x/mmproj-a-Q8_0.gguf", "a.imatrix.gguf", "mtp-a.gguf"], None, None),
        (["mmproj/a-Q8_0.gguf"], None, "mmproj/a-Q8_0.gguf"),
        (["a.safetensors", "Q4_K_M.txt"], None, None),
        ([], None, None),
    ],
)
def test_the_choice(names: list[str], quant: str | None, chosen: str | None) -> None:
    assert _first(names, quant) == chosen


def test_parts_belong_together() -> None:
    names = [f"a-Q4_K_M-0000{part}-of-00003.gguf" for part in (1, 2, 3)]
    assert models(reversed(names)) == {names[0]: tuple(names)}
    assert models(names[:2]) == {}
    assert models([*names, "b.gguf"]) == {names[0]: tuple(names), "b.gguf": ("b.gguf",)}
    assert _first(names, None) == names[0]


def test_only_the_default_quant_is_chosen_silently() -> None:
    for names, is_default in ((["Q4_K_M.gguf"], True), (["Q8_0.gguf"], False)):
        choice = choose(names, None)
        assert choice is not None
        assert choice.is_default is is_default


def test_quants_are_named_once_and_not_all_of_very_many() -> None:
    assert quants(["a-Q8_0.gguf", "b.q8_0.gguf", "b-UD-IQ1_S.gguf"]) == "Q8_0, q8_0, UD-IQ1_S"
    assert quants(["plain.gguf", "F16/plain2.gguf"]) == "plain.gguf, F16"
    assert quants(f"{i}.gguf" for i in range(99)).endswith("23.gguf and 75 more")


def test_a_checkpoint_is_complete_with_all_its_shards() -> None:
    names = ["config.json", *(f"model-0000{part}-of-00002.safetensors" for part in (1, 2))]
    assert is_complete(names)
    assert not is_complete(names[:2])
    assert not is_complete(names[1:])
    assert not is_complete([f"sub/{name}" for name in names])
