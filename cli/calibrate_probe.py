"""What this machine sustains, before any model runs on it."""

from dataclasses import dataclass

from tokcast.cli.measuring import Engine
from tokcast.measurements.launch import rates
from tokcast.measurements.probe import Peaks, probe
from tokcast.measurements.runners.rates import Rate
from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host


@dataclass(frozen=True, slots=True)
class Probed:
    """What this machine sustains, by numpy and by the runtime's own kernels."""

    peaks: Peaks | None
    device: str
    rates: tuple[Rate, ...]

    def facts(self, host: Host) -> dict[str, float]:
        """Return measured peaks that stand in for published ones.

        A nameplate is kept where it was published: the release's effects are relative to it. An
        estimate, as of a virtual machine, gives way to the measurement.
        """
        if host.confidence != "low":
            return {}
        read = [r.bytes_per_s for r in self.rates]
        fp32 = [r.flops_per_s for r in self.rates if r.type == "F32"]
        if self.peaks is not None:
            read.append(self.peaks.bytes_per_s)
            fp32.append(self.peaks.fp32_flops_per_s)
        found = {"bytes_per_s": max(read, default=0.0), "fp32_flops_per_s": max(fp32, default=0.0)}
        return {name: value for name, value in found.items() if value}

    def notes(self) -> tuple[str, ...]:
        """Return the figures in words, with their spread."""
        found = []
        if self.peaks is not None:
            p = self.peaks
            found.append(
                f"Measured here: {p.bytes_per_s / 1e9:.1f} GB/s read"
                f" (spread {100 * p.bytes_spread:.0f} %), {p.triad_bytes_per_s / 1e9:.1f} GB/s"
                f" triad, {p.fp32_flops_per_s / 1e9:.0f} GFLOP/s FP32"
                f" (spread {100 * p.flops_spread:.0f} %), {p.n_threads} threads."
            )
        kernels = ", ".join(
            f"{r.type} {r.bytes_per_s / 1e9:.0f} GB/s and {r.flops_per_s / 1e9:,.0f} GFLOP/s"
            for r in self.rates
        )
        if kernels:
            spread = 100 * max(r.spread for r in self.rates)
            found.append(f"Its kernels on {self.device}: {kernels} (spread up to {spread:.0f} %).")
        return tuple(found)


def probed_by(engine: Engine, n_threads: int) -> Probed:
    """Measure bandwidth and arithmetic, by numpy on a processor and by the runtime's kernels."""
    peaks = probe(n_threads) if engine.setup.backend == "CPU" else None
    try:
        device, found = rates("mlx" if engine.runtime == "mlx" else "llama.cpp", n_threads)
    except InputError:
        # Only llama-bench is here, or a build without the interface: the runs say enough.
        return Probed(peaks, "", ())
    return Probed(peaks, device, found)
