"""A process of a training sweep: builds each point's model, times its steps, tells the first.

Started by `tokcast.measurements.train_sweep` as `python -m ... JOB`, JOB being JSON; the process
of rank 0 prints one line of JSON a point, or one with "error".
"""

import json
import os
import sys
import time
from collections.abc import Mapping
from typing import Any

from tokcast.measurements.training_runs import TrainPoint

# FSDP's and tensor parallelism's first steps set up buffers and plans.
N_WARM = 2


def timed(point: TrainPoint, mesh: Any, n_repeats: int, most_seconds: float) -> list[float]:
    """Return the seconds of each step after warming up, at least three; fewer when they are slow.

    Every process trains on its share of the batch under FSDP, and on all of it under tensor
    parallelism.
    """
    import torch

    from tokcast.measurements.runners.torch_model import build

    model = build(point, mesh)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4)
    n_here = point.n_batch // point.n_devices if point.strategy == "fsdp" else point.n_batch
    tokens = torch.randint(point.shape.n_vocab, (n_here, point.n_length))
    times: list[float] = []
    for index in range(N_WARM + n_repeats):
        start = time.perf_counter()
        model(tokens).backward()
        optimiser.step()
        optimiser.zero_grad()
        # Every process must agree on when to stop: only the first decides.
        took = _agreed(time.perf_counter() - start, point.n_devices)
        if index >= N_WARM:
            times.append(took)
        if len(times) >= 3 and sum(times) > most_seconds:
            break
    return times


def _agreed(seconds: float, n_devices: int) -> float:
    """Return the slowest process's time, which all processes then know."""
    if n_devices == 1:
        return seconds
    import torch
    from torch import distributed

    value = torch.tensor(seconds, dtype=torch.float64)
    distributed.all_reduce(value, op=distributed.ReduceOp.MAX)
    return float(value)


def _mesh(job: Mapping[str, Any]) -> Any:
    if job["n_devices"] == 1:
        return None
    from torch import distributed
    from torch.distributed.device_mesh import init_device_mesh

    distributed.init_process_group(
        "gloo", init_method=job["meeting"], rank=job["rank"], world_size=job["n_devices"]
    )
    return init_device_mesh("cpu", (job["n_devices"],))


def main() -> None:
    """Run the job of the command line."""
    job = json.loads(sys.argv[1])
    import torch

    torch.set_num_threads(job["n_threads"])
    mesh = _mesh(job)
    for data in job["points"]:
        times = timed(TrainPoint(**data), mesh, job["n_repeats"], job["most_seconds"])
        if job["rank"] == 0:
            event = {"point": data, "times": times, "torch": torch.__version__}
            sys.stdout.write(json.dumps(event) + "\n")
            sys.stdout.flush()
    if mesh is not None:
        torch.distributed.destroy_process_group()
    sys.stdout.flush()
    # Gloo's threads may still wait for each other when a process ends in the usual way.
    os._exit(0)


if __name__ == "__main__":
    main()
