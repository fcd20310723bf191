"""How long 1,000 plans take: placed, their memory worked out, and timed.

python benchmarks/placement.py
"""

import time

from tokcast.cli.placed import run_for
from tokcast.cli.placing import Words, placing_of
from tokcast.fits.placed_released import released_placed
from tokcast.fits.released import released
from tokcast.predictor import catalogue
from tokcast.predictor.ledger import Workload
from tokcast.predictor.memory import Setting
from tokcast.predictor.placement.choose import Trial
from tokcast.predictor.placement.inventory import Inventory
from tokcast.predictor.placement.plan import PlacementOptions
from tokcast.predictor.placement.speed import compile_speed
from tokcast.predictor.roofline import Question

HOST = "RTX 4070 Laptop + 64G DDR5-5600"
CASES = (("qwen3-30b-a3b", "-ncmoe"), ("llama-3.1-70b", "-ngl"), ("deepseek-v3", "-ncmoe"))
N_PLANS = 1000


def seconds(name: str, flag: str) -> float:
    """Return what 1,000 plans of one model take, reading its header once included."""
    started = time.perf_counter()
    model = Inventory(catalogue.header(name, "Q4_K_M"))
    placing = placing_of(Words(), HOST)
    devices = placing.machine.devices
    run = run_for(model.spec, placing, HOST, None, "auto")
    question = Question(Workload("decode", 1, 4096), devices[0].host, run)
    speed = compile_speed(model.spec, devices, question, released(), released_placed())
    trial = Trial(model, placing.machine, 8192, Setting(), speed)
    for i in range(N_PLANS):
        n = i % (model.n_layer + 1)
        trial(PlacementOptions(n_cpu_moe=n) if flag == "-ncmoe" else PlacementOptions(n))
    return time.perf_counter() - started


def main() -> None:
    """Print a line a model."""
    released()
    for name, flag in CASES:
        took = seconds(name, flag)
        print(f"{N_PLANS:,} plans of {name} over {flag}: {took:.2f} s (target 1 s)")


if __name__ == "__main__":
    main()
