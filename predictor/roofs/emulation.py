"""FP64 emulated on matrix units by residues (Ozaki scheme II): four terms and a threshold.

The Tensor-Memory Equilibrium model has three terms: products on the matrix units, traffic, and
reconstruction of each output. The fourth is deconstruction: every streamed FP64 operand is
scaled, rounded and reduced modulo each of r moduli by integer instructions before any product.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from tokcast.predictor.roofs.floor import Floor
from tokcast.predictor.roofs.resources import positive
from tokcast.predictor.roofs.tables import (
    check_keys,
    entries,
    number,
    read,
    shipped,
    table_of,
    text,
)

FP64_BYTES = 8
_TOP = ("title", "note", "machine", "source", "kernel")


def threshold(
    ops_per_residue: float, n_moduli: float, fp64_flops_per_s: float, int_ops_per_s: float
) -> float:
    """Return OI* = c_q r P_fp64 / (8 P_int), FLOP a streamed operand byte.

    Below it the integer units need longer to take the operands apart than native FP64 needs for
    all of the work, however fast the matrix units are. Raises InputError for what is not positive.
    """
    for value, name in (
        (ops_per_residue, "ops_per_residue"),
        (n_moduli, "n_moduli"),
        (fp64_flops_per_s, "fp64_flops_per_s"),
        (int_ops_per_s, "int_ops_per_s"),
    ):
        positive(value, name)
    return ops_per_residue * n_moduli * fp64_flops_per_s / (FP64_BYTES * int_ops_per_s)


@dataclass(frozen=True, slots=True)
class Emulator:
    """A machine and an implementation, in SI units.

    `products` are matrix-unit operations for one of FP64 (about the moduli, times the products
    each takes), `ops_per_residue` integer instructions for an operand and modulus (c_q),
    `ops_per_output` those that put one output together again, `residue_bytes` a stored residue.
    """

    fp64_flops_per_s: float
    tensor_flops_per_s: float
    int_ops_per_s: float
    bytes_per_s: float
    n_moduli: float
    products: float
    ops_per_residue: float
    ops_per_output: float = 0.0
    residue_bytes: float = 1.0

    @property
    def threshold(self) -> float:
        """Return the operational intensity below which native FP64 wins, FLOP/byte."""
        return threshold(
            self.ops_per_residue, self.n_moduli, self.fp64_flops_per_s, self.int_ops_per_s
        )


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel: operations, bytes from memory, of which streamed FP64 operands, and outputs."""

    name: str
    flops: float
    n_bytes: float
    operand_bytes: float
    n_outputs: float = 0.0

    @property
    def intensity(self) -> float:
        """Return operations a streamed operand byte."""
        return self.flops / self.operand_bytes


def native_seconds(e: Emulator, k: Kernel) -> float:
    """Return the roofline time on the FP64 units."""
    return max(k.flops / e.fp64_flops_per_s, k.n_bytes / e.bytes_per_s)


def emulated(e: Emulator, k: Kernel) -> Floor:
    """Return the four terms in seconds: their maximum is full overlap, their sum none."""
    n_operands = k.operand_bytes / FP64_BYTES
    return Floor(
        {
            "products": e.products * k.flops / e.tensor_flops_per_s,
            "memory": k.n_bytes / e.bytes_per_s,
            "reconstruction": k.n_outputs * e.ops_per_output / e.int_ops_per_s,
            "deconstruction": n_operands * e.ops_per_residue * e.n_moduli / e.int_ops_per_s,
        }
    )


def stored(e: Emulator, k: Kernel) -> Floor:
    """Return the terms where residues were computed once and are read instead of the operands."""
    n_operands = k.operand_bytes / FP64_BYTES
    more = n_operands * e.n_moduli * e.residue_bytes - k.operand_bytes
    return emulated(replace(e, ops_per_residue=0.0), replace(k, n_bytes=k.n_bytes + more))


def speedup(e: Emulator, k: Kernel, pick: str = "optimistic") -> float:
    """Return native over emulated time; `pick` is the emulated floor that is taken."""
    return native_seconds(e, k) / float(getattr(emulated(e, k), pick))


def needed_ops(e: Emulator, k: Kernel) -> float:
    """Return the c_q at which taking operands apart is as long as the native kernel.

    With native compute-bound this is 8 P_int OI / (r P_fp64), the threshold solved for c_q.
    """
    n_operands = k.operand_bytes / FP64_BYTES
    return native_seconds(e, k) * e.int_ops_per_s / (n_operands * e.n_moduli)


@dataclass(frozen=True, slots=True)
class Study:
    """An emulator and the kernels it is asked about."""

    title: str
    emulator: Emulator
    kernels: tuple[Kernel, ...]
    note: str = ""


def study(path: Path) -> Study:
    """Return what a TOML file describes; raises InputError naming file and key."""
    table = read(path)
    check_keys(table, str(path), _TOP)
    kernels = tuple(_kernel(k, path) for k in entries(table, "kernel", str(path)))
    title = text(table, "title", str(path))
    return Study(title, _emulator(table, path), kernels, str(table.get("note", "")))


def _emulator(table: Mapping[str, Any], path: Path) -> Emulator:
    given = table_of(table, "machine", str(path))
    where = f"{path}: machine"
    names = [f.name for f in fields(Emulator)]
    check_keys(given, where, names)
    optional = {"ops_per_output": 0.0, "residue_bytes": 1.0}
    return Emulator(
        **{
            name: number(given.get(name, optional.get(name)), f"{where}: {name}", _least(name))
            for name in names
        }
    )


def _least(name: str) -> float | None:
    """Return 0 for what may be nothing, None for what must be above it."""
    return 0.0 if name in ("ops_per_output", "n_outputs") else None


def _kernel(entry: Mapping[str, Any], path: Path) -> Kernel:
    name = text(entry, "name", f"{path}: kernel")
    where = f"{path}: kernel {name}"
    names = ("flops", "n_bytes", "operand_bytes", "n_outputs")
    check_keys(entry, where, ("name", *names))
    given = {"n_outputs": 0.0, **entry}
    return Kernel(name, *(number(given.get(n), f"{where}: {n}", _least(n)) for n in names))


def shipped_speedup(example: str, kernel: str, pick: str = "optimistic") -> float:
    """Return native over emulated time of an example's kernel."""
    found = study(shipped(example))
    return speedup(found.emulator, next(k for k in found.kernels if k.name == kernel), pick)


def without_deconstruction(example: str, kernel: str) -> float:
    """Return the speedup that the three-term model claims for an example's kernel."""
    found = study(shipped(example))
    free = replace(found.emulator, ops_per_residue=0.0)
    return speedup(free, next(k for k in found.kernels if k.name == kernel))


def emulated_tflops(example: str, kernel: str) -> float:
    """Return the FP64 rate that emulation reaches on an example's kernel, in TFLOP/s."""
    found = study(shipped(example))
    k = next(k for k in found.kernels if k.name == kernel)
    return k.flops / emulated(found.emulator, k).optimistic / 1e12
