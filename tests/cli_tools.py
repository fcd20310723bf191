"""Running the command line in this process, and models small enough to be quick."""

import io
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from small_models import dense, header

from tokcast.cli.app import main
from tokcast.predictor.gguf_write import write_gguf
from tokcast.predictor.header import Header, Value

MODEL = "llama-3.1-8b@Q4_K_M"
RTX = ("--host", "RTX 4090")


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str
    cpu_seconds: float


def run(*args: str | Path) -> Result:
    """Run `tokcast` with these arguments; what it prints is caught, a traceback is not."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    start = time.process_time()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["tokcast", *map(str, args)])
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        with pytest.raises(SystemExit) as caught:
            main()
    seconds = time.process_time() - start
    texts = []
    for stream in (out, err):
        stream.flush()
        stream.seek(0)
        texts.append(stream.read())
    assert isinstance(caught.value.code, int)
    return Result(caught.value.code, texts[0], texts[1], seconds)


def good(*args: str | Path) -> str:
    """Return what a command prints that must succeed."""
    result = run(*args)
    assert (result.code, result.err) == (0, "")
    return result.out


def predicted(*args: str | Path) -> dict[str, Any]:
    """Return a prediction as the command's JSON."""
    data: dict[str, Any] = json.loads(good("predict", *args, "-o", "json"))
    return data


def labels(*args: str | Path) -> list[str]:
    """Return the tests of a prediction, in their order."""
    rows = good("predict", *args, "-o", "jsonl").splitlines()
    return [json.loads(row)["test"] for row in rows]


def refused(*args: str | Path) -> str:
    """Return the one line that a command says of bad input, which it must not accept."""
    result = run(*args)
    assert (result.code, result.out) == (2, "")
    assert result.cpu_seconds < 2
    assert result.err.startswith("tokcast: ")
    assert result.err.endswith("\n")
    line = result.err.removeprefix("tokcast: ").removesuffix("\n")
    assert line.isprintable()
    return line


def save(path: Path, model: Header) -> Path:
    """Write a model's header, and nothing for its weights."""
    write_gguf(path, model.metadata, model.tensors, sparse_data=False)
    return path


def small(path: Path, name: str = "Small", context: int = 4096, **keys: Value) -> Path:
    """Write a dense model of one block that is labelled F16."""
    model = dense(context_length=context, vocab_size=10, feed_forward_length=16, **keys)
    named = {"general.name": name, "general.file_type": 1}
    return save(path, header("llama", {}, *model.tensors, general={**model.metadata, **named}))
