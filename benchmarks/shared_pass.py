"""How good is the pass that `predict --workload` derives, beside the packaged measured batches?

    python benchmarks/shared_pass.py [FILE.csv]

Prints predicted over measured seconds of passes in which every sequence generates, by how many
share them; run on the machine that the batches were measured on, whose chip is detected.
"""

import sys
from collections import defaultdict
from pathlib import Path
from statistics import median

from tokcast.cli.attribute import by_conditions
from tokcast.cli.measuring import detected
from tokcast.fits.released import released
from tokcast.measurements import batches as store
from tokcast.predictor.batch_step import batch_step
from tokcast.predictor.ledger import Workload
from tokcast.predictor.model import model_spec
from tokcast.predictor.roofline import Question
from tokcast.predictor.sources import open_model
from tokcast.predictor.terms import Run


def main() -> None:
    """Print a line a model."""
    found = store.read(Path(sys.argv[1])) if len(sys.argv) > 1 else store.packaged()
    host = detected("CPU")
    for conditions, batches in by_conditions(found).items():
        run = Run(backend="CPU", n_threads=conditions.n_threads, year=released().newest)
        spec = model_spec(open_model(conditions.model, offline=True))
        step = batch_step(spec, Question(Workload("decode"), host, run), released())
        ratios = defaultdict(list)
        for b in batches:
            if b.kind == "decode" and b.clean_seconds:
                n = len(b.requests)
                depth = sum(r.n_past for r in b.requests) // n
                ratios[n].append(step.seconds(n, depth) / b.clean_seconds)
        shown = ", ".join(f"{n}: {median(r):.2f}" for n, r in sorted(ratios.items()))
        print(f"{conditions.model} on {host.name}, predicted over measured: {shown}")


if __name__ == "__main__":
    main()
