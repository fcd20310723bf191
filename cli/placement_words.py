"""What was typed about a placement, apart from its parsing: most predictions have none."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Words:
    """What was typed, as text; None where nothing was."""

    n_gpu_layers: str | None = None
    n_cpu_moe: str | None = None
    override_tensor: tuple[str, ...] = ()
    tensor_split: str | None = None
    split_mode: str | None = None
    main_gpu: str | None = None
    no_kv_offload: bool = False
    fit: bool = False
    n_parallel: str | None = None
    swa_full: bool = False
    n_threads: str | None = None
    n_batch: str | None = None

    @property
    def is_any(self) -> bool:
        """Return whether anything was asked."""
        return self != Words()
