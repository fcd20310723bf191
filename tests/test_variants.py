"""Models in all file types equal what a whole tensor table gives."""

import pytest

from tokcast.predictor import catalogue
from tokcast.predictor.errors import InputError
from tokcast.predictor.model import model_spec
from tokcast.predictor.variants import Variants

NAMES = catalogue.names()
TYPES = catalogue.file_types()
# One of each kind of rule: a dense 70B, eight experts, shared experts, windows, tied heads,
# tables a layer, latent attention, state space beside attention, experts that keep their type.
SPECIAL = (
    "llama-3.1-70b",
    "mixtral-8x7b",
    "deepseek-v2-lite",
    "gemma-3-1b",
    "gemma-3n-e2b",
    "gpt-oss-20b",
    "qwen3-next-80b-a3b",
    "granite-4.0-h-small",
)


@pytest.mark.parametrize("name", [n for n in SPECIAL if catalogue.known_name(n)])
def test_every_file_type_of_models_with_rules_of_their_own(name: str) -> None:
    variants = Variants(name)
    for file_type in TYPES:
        assert variants.spec(file_type) == model_spec(catalogue.header(name, file_type))


@pytest.mark.parametrize(
    ("name", "file_type"), [(name, TYPES[7 * i % len(TYPES)]) for i, name in enumerate(NAMES)]
)
def test_every_model_in_some_file_type(name: str, file_type: str) -> None:
    assert Variants(name).spec(file_type) == model_spec(catalogue.header(name, file_type))


def test_spellings_are_those_of_the_catalogue() -> None:
    variants = Variants("Qwen3 8B Instruct")
    assert variants.spec("q4_k_m").source == "qwen3-8b@Q4_K_M"
    assert variants.spec("MLX-4bit-g128").source == "qwen3-8b@mlx-4bit-g128"


def test_unknown_names_are_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match=r"no model 'qwen3-8c' in the catalogue; nearest are"):
        Variants("qwen3-8c")
    with pytest.raises(InputError, match=r"no file type 'Q4_K_Q'; nearest are"):
        Variants("qwen3-8b").spec("Q4_K_Q")
