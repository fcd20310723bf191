"""llama.cpp asked where it would put a model: `benchmarks/memory_oracle.cpp`, without weights."""

import os
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from tokcast.measurements.synthetic_shape import clone
from tokcast.predictor.gguf_write import header_bytes
from tokcast.predictor.header import Header
from tokcast.predictor.memory import Setting
from tokcast.predictor.placement.plan import PlacementOptions

EXPERTS = "\\.ffn_(up|down|gate|gate_up)_(ch|)exps"


@cache
def oracle() -> Path:
    """Return the oracle, or skip the test; fail it where none may be missing."""
    folder = os.environ.get("LLAMA_CPP_LIB_PATH")
    found = Path(folder) / "memory-oracle" if folder else None
    if found is None or not os.access(found, os.X_OK):
        what = "memory-oracle is not in LLAMA_CPP_LIB_PATH: benchmarks/build_llama.sh makes it"
        if os.environ.get("TOKCAST_REQUIRE_RUNTIMES") == "1":
            pytest.fail(f"{what}, and TOKCAST_REQUIRE_RUNTIMES=1")
        pytest.skip(what)
    return found


def sparse(path: Path, header: Header) -> Path:
    """Write a model of which only the header takes room on the disk."""
    made = clone(header)
    metadata = {**made.metadata, "tokenizer.ggml.model": "no_vocab"}
    head, n_data = header_bytes(metadata, made.tensors)
    with path.open("wb") as file:
        file.write(head)
        file.truncate(len(head) + n_data)
    return path


def words(path: Path, n_context: int, how: Setting) -> str:
    """Return what a question says of caches."""
    return (
        f"{path} {n_context} {how.n_ubatch} {how.n_sequences} {how.type_k.lower()} "
        f"{how.type_v.lower()} {int(how.flash_attention)} {int(how.swa_full)} 0"
    )


def memory_question(path: Path, n_context: int, how: Setting, o: PlacementOptions) -> str:
    """Return the question what each device would hold."""
    patterns = [f"{pattern}={name}" for pattern, name in o.overrides]
    patterns += [f"blk\\.{i}{EXPERTS}=CPU" for i in range(o.n_cpu_moe)]
    ngl = -1 if o.n_gpu_layers is None else o.n_gpu_layers
    split = ",".join(map(str, o.tensor_split)) or "-"
    return (
        f"memory {words(path, n_context, how)} {ngl} {int(o.no_kv_offload)} {o.split_mode} "
        f"{o.main_gpu} {split} {';'.join(patterns) or '-'}"
    )


def ask(questions: Sequence[str], cards: Sequence[float] = ()) -> list[str]:
    """Return llama.cpp's answers; a question that llama.cpp can't answer is an error in words."""
    done = subprocess.run(
        [str(oracle()), *(str(int(n)) for n in cards)],
        input="".join(f"{q}\n" for q in questions),
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "GGML_NO_BACKTRACE": "1"},
        check=False,
    )
    answers = [x for x in done.stdout.splitlines() if x.split(" ")[0] in ("ok", "no", "error")]
    assert len(answers) == len(questions), done.stderr[-500:]
    return answers


def triples(answer: str) -> list[tuple[int, int, int]]:
    """Return (weights, caches, compute) of each device from an answer."""
    kind, *numbers = answer.split()
    assert kind == "ok", answer
    values = [int(n) for n in numbers]
    return [(values[i], values[i + 1], values[i + 2]) for i in range(0, len(values), 3)]
