"""The catalogue: counts that others printed, tensor lists of real files, names and errors."""

import json
import re
from pathlib import Path

import catalogue_evidence as evidence
import pytest

from tokcast.predictor import catalogue
from tokcast.predictor.errors import InputError
from tokcast.predictor.quants import TYPES_BY_NAME

NAMES = catalogue.names()
PRINTED = [name for name in NAMES if catalogue.entry(name).printed_params]


# a file without the optional tables, and one from before the converter kept this one in F32
KNOWN_DIFFERENCES = {
    "GLM-4.6": {"nextn.embed_tokens.weight", "nextn.shared_head_head.weight"},
    "GLM-5.1": {"indexer.proj.weight"},
}


def n_params(header: catalogue.Header) -> int:
    return sum(tensor.n_params for tensor in header.tensors)


@pytest.mark.parametrize("name", PRINTED)
def test_parameters_equal_what_llama_bench_prints(name: str) -> None:
    number, unit = str(catalogue.entry(name).printed_params).split()
    scale = {"M": 1e6, "B": 1e9}[unit]
    assert evidence.prints_as(n_params(catalogue.header(name, "F16")) / scale, number)


@pytest.mark.parametrize("name", [n for n in NAMES if catalogue.entry(n).hub_params])
def test_parameters_equal_what_the_model_hub_counts(name: str) -> None:
    """Exactly, less the rope tables that a converter adds."""
    tensors = catalogue.header(name, "BF16").tensors
    counted = sum(t.n_params for t in tensors if not t.name.startswith("rope_"))
    assert counted == catalogue.entry(name).hub_params


def test_every_entry_has_a_count_or_a_tensor_list_of_others() -> None:
    evidence_of = {name: catalogue.entry(name).checked for name in NAMES}
    kinds = ("printed params", "published params", "hub parameters", "tensor list")
    assert [
        n for n, checked in evidence_of.items() if not any(c.startswith(kinds) for c in checked)
    ] == []


@pytest.mark.parametrize(
    ("name", "hub", "more"),
    [
        # one MTP block: experts, attention without compressor, hyper-connections, projections
        ("deepseek-v4-pro", 1598839674782, 25840145979),
        # three MTP blocks with an output matrix each
        ("step-3.5-flash", 199384301376, 3 * 809390336),
        # one MTP block of matrices and five norms; the hub leaves out 48 routing biases
        ("nemotron-3-ultra-550b-a55b", 560524578816, 11215568896 + 5 * 8192 - 48 * 512),
        # two scalars of the activation a block
        ("apertus-8b", 8053338176, 2 * 32),
        ("apertus-70b", 70599864480, 2 * 80),
    ],
)
def test_counts_that_differ_by_what_the_file_leaves_out(name: str, hub: int, more: int) -> None:
    tensors = catalogue.header(name, "BF16").tensors
    counted = sum(t.n_params for t in tensors if not t.name.startswith("rope_"))
    assert counted + more == hub


def test_minimax_m3_without_its_indexer_is_what_llama_bench_printed() -> None:
    tensors = catalogue.header("minimax-m3", "BF16").tensors
    counted = sum(t.n_params for t in tensors if ".indexer." not in t.name)
    assert evidence.prints_as(counted / 1e9, "425.95")


def listed() -> list[tuple[str, str]]:
    """Return (name, file) of every real tensor list an entry says it was checked against."""
    return [
        (name, check.removeprefix("tensor list: "))
        for name in NAMES
        for check in catalogue.entry(name).checked
        if check.startswith("tensor list: ")
    ]


@pytest.mark.parametrize(("name", "file"), listed())
def test_tensors_equal_those_of_a_real_file(name: str, file: str) -> None:
    """Names, shapes, types and bytes; the lists' bytes include padding to 32."""
    header = catalogue.header(name, "BF16")
    ours = {t.name: (t.shape, t.type, -(-t.n_bytes // 32) * 32) for t in header.tensors}
    real = {n: (s, t, -(-b // 32) * 32) for n, (s, t, b) in evidence.tensor_list(file).items()}
    differ = {n for n in ours.keys() | real.keys() if ours.get(n) != real.get(n)}
    assert {n.split(".", 2)[2] for n in differ} == KNOWN_DIFFERENCES.get(file, set())


def test_every_tensor_list_is_used() -> None:
    assert {file for _, file in listed()} == set(evidence.files("tensor_lists"))


@pytest.mark.parametrize("name", NAMES)
def test_every_entry_is_whole(name: str) -> None:
    entry = catalogue.entry(name)
    assert entry.sources
    assert entry.checked
    assert 0 < entry.published_active_params <= entry.published_total_params
    header = catalogue.header(name, "Q4_K_M")
    assert header.format == "gguf"
    assert header.source == f"{name}@Q4_K_M"
    assert len({tensor.name for tensor in header.tensors}) == len(header.tensors)
    for tensor in header.tensors:
        known = TYPES_BY_NAME[tensor.type]
        assert tensor.shape[0] % known.block == 0
        assert tensor.n_bytes == tensor.n_params // known.block * known.n_bytes
    assert header.metadata["general.architecture"] == entry.architecture.arch
    assert all(not isinstance(value, list) for value in header.metadata.values())


@pytest.mark.parametrize("name", NAMES)
def test_per_block_keys_have_one_value_a_block(name: str) -> None:
    metadata = catalogue.header(name, "Q4_K_M").metadata
    arch = metadata["general.architecture"]
    blocks = metadata[f"{arch}.block_count"]
    assert isinstance(blocks, int)
    of_a_block = {blocks}
    if arch == "glm-dsa":  # llama.cpp wants the kinds of indexers without the MTP block
        of_a_block.add(blocks - 1)
    for key, value in metadata.items():
        if isinstance(value, tuple) and not key.endswith(".dimension_sections"):
            assert len(value) in of_a_block, key


def test_two_spellings_never_share_a_meaning() -> None:
    """No alias of one model reads, punctuation and noise words aside, like another model."""
    plain = json.loads((Path(catalogue.__file__).parent / "data" / "catalogue.json").read_text())
    spellings = [
        (spelling, name)
        for name, entry in plain["entries"].items()
        for spelling in (name, *entry.get("aliases", ()))
    ]
    assert {s: catalogue.entry(s).name for s, _ in spellings} == dict(spellings)
    assert len(spellings) == len(dict(spellings))


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("Qwen3-30B-A3B", "qwen3-30b-a3b"),
        ("qwen3_30b_a3b_instruct_2507", "qwen3-30b-a3b"),
        ("qwen3-coder-30b-a3b", "qwen3-30b-a3b"),
        ("llama3.1-8b", "llama-3.1-8b"),
        ("llama-3.1-8B-instruct", "llama-3.1-8b"),
        ("Meta-Llama-3.1-8B-Instruct-GGUF", "llama-3.1-8b"),
        ("deepseek-r1", "deepseek-v3"),
        ("mistral-small-3.2", "mistral-small-24b"),
        ("phi-4", "phi-4-14b"),
        ("gemma-3-27b-it", "gemma-3-27b"),
        ("gpt-oss-120b", "gpt-oss-120b"),
    ],
)
def test_names_are_read_tolerantly(given: str, name: str) -> None:
    assert catalogue.entry(given).name == name


def test_an_unknown_model_gets_the_three_nearest() -> None:
    message = (
        r"no model 'qwen3-31b' in the catalogue; nearest are qwen3-\S+, qwen3-\S+, qwen3-\S+; "
    )
    with pytest.raises(InputError, match=message):
        catalogue.entry("qwen3-31b")


@pytest.mark.parametrize("given", ["", "8b", "/", "qwen3 -30b a3b q4"])
def test_what_is_no_name(given: str) -> None:
    with pytest.raises(InputError, match="no model"):
        catalogue.header(given, "Q4_K_M")


def test_an_unknown_file_type_gets_the_three_nearest() -> None:
    with pytest.raises(InputError, match="no file type 'Q4_K_X'; nearest are Q4_K_S, Q4_K_M, "):
        catalogue.header("llama-3.1-8b", "Q4_K_X")
    with pytest.raises(InputError, match="no file type 'mlx-7bit'; nearest are mlx-"):
        catalogue.header("llama-3.1-8b", "mlx-7bit")


@pytest.mark.parametrize("file_type", catalogue.file_types())
def test_every_file_type_works(file_type: str) -> None:
    header = catalogue.header("qwen3-0.6b", file_type.lower())
    assert header.source == f"qwen3-0.6b@{file_type}"
    assert header.format == ("mlx" if file_type.startswith("mlx") else "gguf")


def test_short_forms_of_file_types() -> None:
    assert catalogue.header("qwen3-0.6b", "q4-k-m").source == "qwen3-0.6b@Q4_K_M"
    assert catalogue.header("qwen3-0.6b", "Q4_K").source == "qwen3-0.6b@Q4_K_M"


def test_gpt_oss_keeps_mxfp4_experts_whatever_the_label() -> None:
    """A file called F16 is 12.83 GiB: llama-bench prints that."""
    header = catalogue.header("gpt-oss-20b", "F16")
    experts = {t.type for t in header.tensors if t.name.endswith("_exps.weight")}
    assert experts == {"MXFP4"}
    assert evidence.prints_as(sum(t.n_bytes for t in header.tensors) / 2**30, "12.83")
    mlx = catalogue.header("gpt-oss-20b", "mlx-8bit")
    assert {t.type for t in mlx.tensors if t.name.endswith("_exps.weight")} == {"MXFP4"}


def test_an_mlx_conversion_by_hand() -> None:
    """Llama 3.1 8B: all matrices 4.5 bits a weight, 65 norms of 4096 in 16 bits, no rope table."""
    header = catalogue.header("llama-3.1-8b", "mlx-4bit")
    norms = 65 * 4096
    matrices = n_params(header) - norms
    assert sum(t.n_bytes for t in header.tensors) == matrices * 9 // 16 + norms * 2
    assert "rope_freqs.weight" not in {t.name for t in header.tensors}
    assert "general.file_type" not in header.metadata


def test_mlx_drops_the_mtp_block() -> None:
    gguf, mlx = catalogue.header("glm-4.5-air", "BF16"), catalogue.header("glm-4.5-air", "mlx-4bit")
    assert gguf.metadata["glm4moe.block_count"] == 47
    assert gguf.metadata["glm4moe.nextn_predict_layers"] == 1
    assert mlx.metadata["glm4moe.block_count"] == 46
    assert not [t.name for t in mlx.tensors if ".nextn." in t.name]


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("gemma-2-2b", [1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25]),
        ("gemma-3-1b", [5, 11, 17, 23]),
        ("gemma-3n-e2b", [4, 9, 14, 19, 24, 29]),
        ("llama-4-scout", list(range(3, 48, 4))),
        ("phi-3-mini-4k", list(range(32))),  # llama.cpp leaves its window out
    ],
)
def test_layers_that_see_the_whole_context(name: str, full: list[int]) -> None:
    metadata = catalogue.header(name, "Q4_K_M").metadata
    sliding = metadata[f"{metadata['general.architecture']}.attention.sliding_window_pattern"]
    assert isinstance(sliding, tuple)
    assert [i for i, slides in enumerate(sliding) if not slides] == full


def test_the_documentation_counts_what_is_there() -> None:
    page = (Path(__file__).parent.parent / "docs" / "catalogue.md").read_text()
    assert f"each of the {len(NAMES)} entries" in page
    rows = re.findall(
        r"^\| `([a-z ]+)( with …)?` \|.*\| (\d+)(?: \((\d+) files\))? \|$", page, re.MULTILINE
    )
    checks = [catalogue.entry(name).checked for name in NAMES]
    assert len(rows) == 7
    for kind, more, count, n_files in rows:
        start = f"{kind} with" if more else f"{kind}:"
        n = sum(
            any(check.startswith(start) or (check == kind and not more) for check in found)
            for found in checks
        )
        assert n == int(count), kind
        if n_files:
            assert len(evidence.files("tensor_lists")) == int(n_files)
    assert f"hold {len(evidence.csv_rows('printed_sizes.csv'))} sizes" in page
