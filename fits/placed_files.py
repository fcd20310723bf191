"""The tensors of a published file, where its publisher's own mix of types is known.

`publisher_mixes.csv` has, for a publisher's label, the types of routed experts whose size is the
printed one while all other matrices of the blocks have the publisher's usual type. Bytes that are
then still missing are spread over the experts.
"""

import csv
import re
from dataclasses import replace
from functools import cache
from importlib import resources

from tokcast.predictor.catalogue import header
from tokcast.predictor.header import Header, Tensor
from tokcast.predictor.placement.inventory import EXPERTS, Inventory
from tokcast.predictor.quants import bits_per_weight

GIB = 2.0**30
_QUANTIZED = re.compile(r"^(Q|IQ|MXFP|TQ|NVFP)")


@cache
def _mixes() -> dict[tuple[str, str, str], tuple[str, str, str]]:
    data = resources.files("tokcast.measurements").joinpath("data/publisher_mixes.csv")
    rows = csv.DictReader(data.read_text(encoding="utf-8").splitlines())
    return {
        (r["publisher"], r["model_id"], r["label"]): (r["dense"], r["gate_up"], r["down"])
        for r in rows
    }


def _typed(tensor: Tensor, type_name: str) -> Tensor:
    size = int(tensor.n_params * bits_per_weight(type_name) / 8)
    return replace(tensor, type=type_name, n_bytes=size)


def mixed(head: Header, dense: str, gate_up: str, down: str) -> Header:
    """Return a header with matrices in a publisher's types; tables are left as they are."""

    def one(tensor: Tensor) -> Tensor:
        if not _QUANTIZED.match(tensor.type) or not tensor.name.startswith("blk."):
            return tensor
        if EXPERTS.search(tensor.name):
            return _typed(tensor, down if "down" in tensor.name else gate_up)
        return _typed(tensor, dense)

    return replace(head, tensors=tuple(one(t) for t in head.tensors))


def sized(head: Header, n_bytes: float) -> Header:
    """Return a header of a file of this size: the difference is spread over the experts.

    Without experts over all matrices of the blocks.
    """
    experts = [t for t in head.tensors if EXPERTS.search(t.name)]
    flexible = experts or [t for t in head.tensors if t.name.startswith("blk.")]
    names = {t.name for t in flexible}
    missing = n_bytes - sum(t.n_bytes for t in head.tensors)
    factor = 1 + missing / sum(t.n_bytes for t in flexible)
    return replace(
        head,
        tensors=tuple(
            replace(t, n_bytes=round(t.n_bytes * factor)) if t.name in names else t
            for t in head.tensors
        ),
    )


@cache
def inventory(model_id: str, file_type: str, model_file: str, size_gib: float | None) -> Inventory:
    """Return a published file's tensors; raises InputError for an unknown model or type."""
    head = header(model_id, file_type)
    publisher, _, rest = model_file.partition(" ")
    mix = _mixes().get((publisher, model_id, rest.rpartition(" ")[2]))
    if mix is not None:
        head = mixed(head, *mix)
    if size_gib:
        head = sized(head, size_gib * GIB)
    return Inventory(head)
