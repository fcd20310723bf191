"""Headers read some at a time, each becoming a candidate or a reason why it is none."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

from tokcast.predictor.catalogue import entry, known_name
from tokcast.predictor.errors import InputError
from tokcast.predictor.header import Header
from tokcast.predictor.model import model_spec
from tokcast.predictor.select.candidate import Candidate, Origin, Unread
from tokcast.predictor.select.candidates import Progress
from tokcast.predictor.sources.web import Web
from tokcast.predictor.spec import ModelSpec

N_AT_ONCE = 16
# Two files of a model differ in parameters by no more than rope tables and the like.
_LIKE = 0.03


@dataclass(frozen=True, slots=True)
class Job:
    """A header to read, with what is known of the file before; see `Candidate`."""

    address: str
    model: str
    quant: str
    origin: Origin
    read: Callable[[], Header]
    repo: str = ""
    path: str = ""
    licence: str = ""


def read_all(
    jobs: Sequence[Job], web: Web, progress: Progress
) -> tuple[list[Candidate], list[Unread]]:
    """Return the candidates in the jobs' order, and what could not be read.

    `N_AT_ONCE` at a time. What was fetched when the user breaks it off stays in the cache.
    """
    done: dict[int, Candidate | Unread] = {}
    progress(0, len(jobs))
    if any(job.origin == "hub" for job in jobs):
        web.connect()
    pool = ThreadPoolExecutor(N_AT_ONCE)
    try:
        waiting = {pool.submit(_candidate, job): i for i, job in enumerate(jobs)}
        for future in as_completed(waiting):
            done[waiting[future]] = future.result()
            progress(len(done), len(jobs))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    results = [done[i] for i in range(len(jobs))]
    return (
        [r for r in results if isinstance(r, Candidate)],
        [r for r in results if isinstance(r, Unread)],
    )


def _candidate(job: Job) -> Candidate | Unread:
    try:
        header = job.read()
        spec = model_spec(header)
    except InputError as error:
        return Unread(job.address, str(error))
    if not spec.n_params:
        return Unread(job.address, "holds no weights, only a vocabulary")
    licence = header.metadata.get("general.license")
    return Candidate(
        address=job.address,
        spec=spec,
        quant=_mlx_label(spec) if spec.format == "mlx" else job.quant.upper() or spec.file_type,
        model=job.model,
        origin=job.origin,
        model_id=_model_id(spec),
        imatrix=None if spec.format == "mlx" else "quantize.imatrix.file" in header.metadata,
        licence=licence if isinstance(licence, str) and licence else job.licence,
        repo=job.repo,
        path=job.path,
    )


def _model_id(spec: ModelSpec) -> str:
    """Return the catalogue's name of a model that is called so and is as large, else ""."""
    name = known_name(spec.name)
    if name is None:
        return ""
    total = entry(name).published_total_params
    return name if abs(spec.n_params / total - 1) < _LIKE else ""


def _mlx_label(spec: ModelSpec) -> str:
    """Return the catalogue's spelling of an MLX model's bits, such as mlx-4bit."""
    bits, _, group = spec.file_type.removeprefix("MLX").partition("G")
    if not (bits.isdigit() and group.isdigit()):
        return "mlx-bf16"
    return f"mlx-{bits}bit" + ("" if group == "64" else f"-g{group}")
