"""Passes of llama.cpp over several sequences at once, each with a prefix of its own.

The cache is unified, as llama-server's is: all sequences' cells lie in one buffer, and what a
pass added is removed again, so that a batch can be repeated on the same prefixes.
"""

import ctypes
import time
from collections.abc import Iterator
from typing import Any

from tokcast.measurements.batch_plan import Batch, Round, Size
from tokcast.measurements.gate import Gate
from tokcast.measurements.record import Sample
from tokcast.measurements.runners.job import Job
from tokcast.measurements.runners.llama_cpp import LlamaCpp
from tokcast.predictor.errors import InputError

# A pass is repeated so often at least, and until so many seconds were spent on it.
LEAST_REPEATS, MOST_REPEATS, ENOUGH_S = 3, 9, 0.4


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
        """Give every slot its prefix: read once, copied into cells of its own, cut to length."""
        lib, memory = self._l, self._memory
        lib.llama_memory_clear(memory, False)
        if self._prefix is None:
            self._read(self._size.longest)
            n_bytes = lib.llama_state_seq_get_size(self._context, 0)
            self._prefix = (ctypes.c_uint8 * n_bytes)()
            lib.llama_state_seq_get_data(self._context, self._prefix, n_bytes, 0)
            lib.llama_memory_clear(memory, False)
        n_bytes = len(self._prefix)
        for slot, n in enumerate(cached):
            if not lib.llama_state_seq_set_data(self._context, self._prefix, n_bytes, slot):
                raise InputError(f"llama.cpp can't copy a prefix of this model: {self.last_error}")
            if not lib.llama_memory_seq_rm(memory, slot, n, -1):
                raise InputError("llama.cpp can't cut this model's cache back (recurrent state)")

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


def samples(model: BatchedLlama, planned: Round, gate: Gate) -> Iterator[tuple[Sample, ...]]:
    """Yield the repetitions of each batch of a round; the first pass of each is not kept."""
    model.fill(planned.cached)
    for batch in planned.batches:
        model.once(batch, planned.cached)
        found: list[Sample] = []
        while len(found) < LEAST_REPEATS or (
            len(found) < MOST_REPEATS and sum(s.seconds for s in found) < ENOUGH_S
        ):
            seen = gate.before()
            seconds = model.once(batch, planned.cached)
            reading = gate.after(seen, seconds)
            found.append(Sample(seconds, reading.pressure, reading.disturbed))
        yield tuple(found)
