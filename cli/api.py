"""The same as the commands, for Python: values in, objects out."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

from tokcast.cli import predict as predicting
from tokcast.cli import select as selecting
from tokcast.cli.placement_words import Words
from tokcast.cli.predict_answer import Answer
from tokcast.cli.predict_request import Request as PredictRequest
from tokcast.cli.predict_request import parse
from tokcast.cli.select import Selection
from tokcast.cli.select_request import Request as SelectRequest
from tokcast.predictor.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

Number = int | float
Text = str | Number


def _text(value: Text | Sequence[Text]) -> str:
    """Return a value as it would be typed, several with commas between them."""
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence):
        return ",".join(map(_text, value))
    # What is no number has no whole part; the option says what it expects.
    return str(int(value)) if math.isfinite(value) and value == int(value) else repr(value)


def _maybe(value: Text | Sequence[Text] | None) -> str | None:
    return None if value is None else _text(value)


def _several(values: str | Sequence[str]) -> tuple[str, ...]:
    return (values,) if isinstance(values, str) else tuple(values)


@overload
def predict(
    model: str,
    *,
    host: str | None = None,
    backend: str | None = None,
    runtime: str | None = None,
    n_prompt: Text | Sequence[Text] = 512,
    n_gen: Text | Sequence[Text] = 128,
    n_depth: Text | Sequence[Text] | None = None,
    n_ubatch: Text = 512,
    type_k: str = "f16",
    type_v: str = "f16",
    flash_attn: str = "auto",
    n_context: Text | None = None,
    n_gpu_layers: Text | None = None,
    n_cpu_moe: Text | None = None,
    override_tensor: str | Sequence[str] = (),
    tensor_split: Text | Sequence[Text] | None = None,
    split_mode: str | None = None,
    main_gpu: Text | None = None,
    no_kv_offload: bool = False,
    fit: bool = False,
    n_parallel: Text | None = None,
    swa_full: bool = False,
    n_threads: Text | None = None,
    n_batch: Text | None = None,
    bandwidth: Text | None = None,
    tflops: Text | None = None,
    memory: Text | None = None,
    workload: str | None = None,
    trace: str | None = None,
    n_tasks: Text = 1000,
    seed: Text = 1,
    energy: bool = False,
    price: Text | None = None,
    grid: Text | None = None,
    power_limit: Text | None = None,
    offline: bool = False,
) -> Answer: ...


@overload
def predict(
    model: list[str] | tuple[str, ...],
    *,
    host: str | None = None,
    backend: str | None = None,
    runtime: str | None = None,
    n_prompt: Text | Sequence[Text] = 512,
    n_gen: Text | Sequence[Text] = 128,
    n_depth: Text | Sequence[Text] | None = None,
    n_ubatch: Text = 512,
    type_k: str = "f16",
    type_v: str = "f16",
    flash_attn: str = "auto",
    n_context: Text | None = None,
    n_gpu_layers: Text | None = None,
    n_cpu_moe: Text | None = None,
    override_tensor: str | Sequence[str] = (),
    tensor_split: Text | Sequence[Text] | None = None,
    split_mode: str | None = None,
    main_gpu: Text | None = None,
    no_kv_offload: bool = False,
    fit: bool = False,
    n_parallel: Text | None = None,
    swa_full: bool = False,
    n_threads: Text | None = None,
    n_batch: Text | None = None,
    bandwidth: Text | None = None,
    tflops: Text | None = None,
    memory: Text | None = None,
    workload: str | None = None,
    trace: str | None = None,
    n_tasks: Text = 1000,
    seed: Text = 1,
    energy: bool = False,
    price: Text | None = None,
    grid: Text | None = None,
    power_limit: Text | None = None,
    offline: bool = False,
) -> tuple[Answer, ...]: ...


def predict(
    model: str | list[str] | tuple[str, ...],
    *,
    host: str | None = None,
    backend: str | None = None,
    runtime: str | None = None,
    n_prompt: Text | Sequence[Text] = 512,
    n_gen: Text | Sequence[Text] = 128,
    n_depth: Text | Sequence[Text] | None = None,
    n_ubatch: Text = 512,
    type_k: str = "f16",
    type_v: str = "f16",
    flash_attn: str = "auto",
    n_context: Text | None = None,
    n_gpu_layers: Text | None = None,
    n_cpu_moe: Text | None = None,
    override_tensor: str | Sequence[str] = (),
    tensor_split: Text | Sequence[Text] | None = None,
    split_mode: str | None = None,
    main_gpu: Text | None = None,
    no_kv_offload: bool = False,
    fit: bool = False,
    n_parallel: Text | None = None,
    swa_full: bool = False,
    n_threads: Text | None = None,
    n_batch: Text | None = None,
    bandwidth: Text | None = None,
    tflops: Text | None = None,
    memory: Text | None = None,
    workload: str | None = None,
    trace: str | None = None,
    n_tasks: Text = 1000,
    seed: Text = 1,
    energy: bool = False,
    price: Text | None = None,
    grid: Text | None = None,
    power_limit: Text | None = None,
    offline: bool = False,
) -> Answer | tuple[Answer, ...]:
    """Return how fast a model runs on a host, as `tokcast predict` prints it.

    One model by its address gives an `Answer`, several give a tuple of them. `host` None is this
    machine. Lengths are tokens, `bandwidth` GB/s, `tflops` TFLOPS; `memory` is bytes, or text
    such as "24G", `price` money a kWh, `grid` a country's code or grams of CO2 a kWh,
    `power_limit` watts. With a `workload` or a `trace` file, `tasks` of an answer says what whole
    tasks take. What is said of layers, tensors and cards is llama.cpp's, as text or numbers; the
    answer's `placement` says what came of it. Raises InputError for what can't be read or
    understood.
    """
    addresses = (model,) if isinstance(model, str) else tuple(model)
    if not addresses:
        raise InputError("no model given; expected a file, owner/repo[:quant] or name@FILETYPE")
    request = PredictRequest(
        addresses=addresses,
        host=host,
        backend=backend,
        runtime=runtime,
        n_prompt=_text(n_prompt),
        n_gen=_text(n_gen),
        n_depth=_maybe(n_depth),
        n_ubatch=_text(n_ubatch),
        type_k=type_k,
        type_v=type_v,
        flash_attn=flash_attn,
        n_context=_maybe(n_context),
        bandwidth=_maybe(bandwidth),
        tflops=_maybe(tflops),
        memory=_maybe(memory),
        explain=False,
        offline=offline,
        workload=workload,
        trace=trace,
        n_tasks=_text(n_tasks),
        seed=_text(seed),
        energy=energy,
        price=_maybe(price),
        grid=_maybe(grid),
        power_limit=_maybe(power_limit),
        placement=Words(
            n_gpu_layers=_maybe(n_gpu_layers),
            n_cpu_moe=_maybe(n_cpu_moe),
            override_tensor=_several(override_tensor),
            tensor_split=_maybe(tensor_split),
            split_mode=split_mode,
            main_gpu=_maybe(main_gpu),
            no_kv_offload=no_kv_offload,
            fit=fit,
            n_parallel=_maybe(n_parallel),
            swa_full=swa_full,
            n_threads=_maybe(n_threads),
            n_batch=_maybe(n_batch),
        ),
    )
    asked = parse(request)
    answers = tuple(predicting.answer(address, request, asked) for address in addresses)
    return answers[0] if isinstance(model, str) else answers


def select(
    models: str | Sequence[str] = (),
    *,
    search: str | None = None,
    author: str | None = None,
    limit: Text = 20,
    local: bool = False,
    list_file: str | None = None,
    host: str | None = None,
    backend: str | None = None,
    runtime: str | None = None,
    bandwidth: Text | None = None,
    tflops: Text | None = None,
    memory: Text | None = None,
    workload: str | None = None,
    n_prompt: Text = 512,
    at_depth: Text = 0,
    n_context: Text | None = None,
    n_ubatch: Text = 512,
    type_k: str = "f16",
    type_v: str = "f16",
    flash_attn: str = "auto",
    min_decode: Text | None = None,
    max_ttft: Text | None = None,
    max_turn: Text | None = None,
    quality_floor: Text | None = None,
    licence: str | Sequence[str] = (),
    sort: str = "size",
    offline: bool = False,
) -> Selection:
    """Return every candidate on a host, best first, as `tokcast select` ranks them.

    Without models or a search, the catalogue in all its file types. `min_decode` is tokens/s,
    `max_ttft` and `max_turn` seconds or text such as "500ms", `quality_floor` a perplexity ratio
    or text such as "2%". `pick` of what comes back is the best that meets every wish, None where
    nothing does. Raises InputError for what can't be read or understood.
    """
    request = SelectRequest(
        addresses=(models,) if isinstance(models, str) else tuple(models),
        search=search,
        author=author,
        limit=_text(limit),
        is_local=local,
        list_file=list_file,
        host=host,
        backend=backend,
        runtime=runtime,
        bandwidth=_maybe(bandwidth),
        tflops=_maybe(tflops),
        memory=_maybe(memory),
        workload=workload,
        n_prompt=_text(n_prompt),
        at_depth=_text(at_depth),
        n_context=_maybe(n_context),
        n_ubatch=_text(n_ubatch),
        type_k=type_k,
        type_v=type_v,
        flash_attn=flash_attn,
        min_decode=_maybe(min_decode),
        max_ttft=_maybe(max_ttft),
        max_turn=_maybe(max_turn),
        quality_floor=_maybe(quality_floor),
        licences=(licence,) if isinstance(licence, str) else tuple(licence),
        sort=sort,
        offline=offline,
    )
    return selecting.select(request)


def frame(results: Answer | Selection | Sequence[Answer | Selection]) -> "pd.DataFrame":
    """Return a pandas table: a row a prediction, or a row a candidate.

    Columns are those of `-o csv`, in SI units. Raises InputError for nothing, and for answers and
    selections together, whose columns differ.
    """
    import pandas as pd

    from tokcast.cli.predict_data import records
    from tokcast.cli.select_data import selection_records

    listed = [results] if isinstance(results, Answer | Selection) else list(results)
    answers = [each for each in listed if isinstance(each, Answer)]
    if not listed or 0 < len(answers) < len(listed):
        raise InputError("expected answers of predict, or selections of select, and at least one")
    rows = [row for each in answers for row in records(each)]
    for each in listed:
        if isinstance(each, Selection):
            rows += selection_records(each)
    return pd.DataFrame(rows)
