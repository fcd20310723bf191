"""Passes of llama.cpp over several sequences at once, each with a prefix of its own.

The cache is unified, as llama-server's is: all sequences' cells lie in one buffer, and what a
pass added is removed again, so that a batch can be repeated on the same prefixes.
"""

import ctypes
import time
from typing import Any

from tokcast.measurements.batch_plan import Batch, Round, Size
from tokcast.measurements.gate import Gate
from tokcast.measurements.record import Sample
from tokcast.measurements.runners.job import Job
from tokcast.measurements.runners.llama_cpp import LlamaCpp
from tokcast.predictor.errors import InputError

# All batches of a round are gone through so often, so that what slows the machine for some seconds
# does not hit every repetition of one.
N_SWEEPS = 3


class BatchedLlama(LlamaCpp):
    """A model and a context of several sequences."""

    def __init__(self, job: Job, size: Size) -> None:
        self._size = size
        super().__init__(job)
        self._batch = self._l.llama_batch_init(job.settings.n_batch, 0, 1)
        self._prefix: Any = None

    def _parameters(self, job: Job) -> Any:
        params = super()._parameters(job)
        params.n_ctx, params.n_seq_max = self._size.n_cells, self._size.n_slots
        if not hasattr(params, "kv_unified"):
            raise InputError("llama-cpp-python is too old for a unified cache; update it")
        params.kv_unified = True
        # A window that was cut back would otherwise lack the cells before it.
        params.swa_full = True
        return params

    def fill(self, cached: tuple[int, ...]) -> None:
        """Give every slot its prefix, one after another in the cache without gaps.

        The longest is read once; copies are cut to length before they are put in.
        """
        lib, memory = self._l, self._memory
        lib.llama_memory_clear(memory, False)
        if self._prefix is None:
            self._read(self._size.longest)
            self._prefix = self._saved(0)
        else:
            self._put(self._prefix, 0)
        copies = {}
        for slot in sorted(range(len(cached)), key=lambda i: -cached[i]):
            if not lib.llama_memory_seq_rm(memory, 0, cached[slot], -1):
                raise InputError("llama.cpp can't cut this model's cache back (recurrent state)")
            copies[slot] = self._saved(0)
        lib.llama_memory_clear(memory, False)
        for slot, state in copies.items():
            self._put(state, slot)

    def _saved(self, slot: int) -> Any:
        """Return a copy of a slot's cache."""
        n_bytes = self._l.llama_state_seq_get_size(self._context, slot)
        state = (ctypes.c_uint8 * n_bytes)()
        if not self._l.llama_state_seq_get_data(self._context, state, n_bytes, slot):
            raise InputError(f"llama.cpp can't copy this model's cache: {self.last_error}")
        return state

    def _put(self, state: Any, slot: int) -> None:
        if not self._l.llama_state_seq_set_data(self._context, state, len(state), slot):
            raise InputError(f"llama.cpp can't put a prefix into slot {slot}: {self.last_error}")

    def once(self, batch: Batch, cached: tuple[int, ...]) -> float:
        """Return the seconds of one pass; what it added to the cache is removed."""
        b, i = self._batch, 0
        for slot, n_new in batch.parts:
            for k in range(n_new):
                b.token[i] = self._random.randrange(self._n_vocab)
                b.pos[i], b.n_seq_id[i], b.seq_id[i][0] = cached[slot] + k, 1, slot
                b.logits[i] = k == n_new - 1
                i += 1
        b.n_tokens = i
        start = time.perf_counter()
        self._decode(b)
        self._l.llama_synchronize(self._context)
        seconds = time.perf_counter() - start
        for slot, _ in batch.parts:
            self._l.llama_memory_seq_rm(self._memory, slot, cached[slot], -1)
        return seconds

    def close(self) -> None:
        """Free the batch, the context and the model."""
        self._l.llama_batch_free(self._batch)
        super().close()


def samples(model: BatchedLlama, planned: Round, gate: Gate) -> list[tuple[Sample, ...]]:
    """Return the repetitions of each batch of a round, the batches taken turn about.

    A sweep before them warms up and is not kept.
    """
    model.fill(planned.cached)
    found: list[list[Sample]] = [[] for _ in planned.batches]
    for batch in planned.batches:
        model.once(batch, planned.cached)
    for _ in range(N_SWEEPS):
        for batch, kept in zip(planned.batches, found, strict=True):
            seen = gate.before()
            seconds = model.once(batch, planned.cached)
            reading = gate.after(seen, seconds)
            kept.append(Sample(seconds, reading.pressure, reading.disturbed))
    return [tuple(kept) for kept in found]
