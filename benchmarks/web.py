"""Speed of the API: different predictions at 50 a second for 30 s, one worker.

Run as `python benchmarks/web.py`; it starts a server of its own on this machine.
"""

import asyncio
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import httpx
import psutil

PER_SECOND, SECONDS = 50, 30
MODELS = ("llama-3.1-8b", "qwen3-8b", "gemma-3-27b", "gpt-oss-20b", "qwen3-30b-a3b")
TYPES = ("Q4_K_M", "Q5_K_M", "Q8_0")
HOSTS = ("RTX 4090", "RTX 3090", "RTX 5090", "RX 7900 XTX", "M4 Max 40-core")


def bodies(n: int) -> list[dict[str, object]]:
    """Return requests that all differ, so that none is answered from memory."""
    rng = random.Random(1)
    return [
        {
            "model": f"{rng.choice(MODELS)}@{rng.choice(TYPES)}",
            "host": rng.choice(HOSTS),
            "n_depth": [0, rng.randrange(1, 30000), 16384],
        }
        for _ in range(n)
    ]


async def load(url: str, process: psutil.Process) -> str:
    """Return what was seen, as a line."""
    taken: list[float] = []
    n_bad = 0
    limits = httpx.Limits(max_connections=64)
    async with httpx.AsyncClient(
        base_url=url, timeout=20, trust_env=False, limits=limits
    ) as client:

        async def ask(body: dict[str, object]) -> None:
            nonlocal n_bad
            start = time.perf_counter()
            answer = await client.post("/api/v1/predict", json=body)
            taken.append(1e3 * (time.perf_counter() - start))
            n_bad += answer.status_code != 200

        asked = bodies(100 + PER_SECOND * SECONDS)
        for body in asked[:100]:
            await ask(body)
        taken.clear()
        before, cpu, start = process.memory_info().rss, process.cpu_times(), time.perf_counter()
        tasks = []
        for i, body in enumerate(asked[100:]):
            await asyncio.sleep(max(0.0, start + i / PER_SECOND - time.perf_counter()))
            tasks.append(asyncio.create_task(ask(body)))
        await asyncio.gather(*tasks)
        after, spent = process.memory_info().rss, process.cpu_times()
    taken.sort()
    p50, p95 = (taken[int(share * len(taken))] for share in (0.5, 0.95))
    cpu_ms = 1e3 * (spent.user + spent.system - cpu.user - cpu.system) / len(taken)
    return (
        f"{len(taken)} requests at {PER_SECOND}/s, {n_bad} errors: p50 {p50:.1f} ms,"
        f" p95 {p95:.1f} ms, {cpu_ms:.1f} ms of processor each,"
        f" memory {before / 2**20:.0f} -> {after / 2**20:.0f} MiB"
    )


def main() -> None:
    """Start a server, load it, print what was seen."""
    tokcast = Path(sys.executable).with_name("tokcast")
    environ = {**os.environ, "HF_HUB_OFFLINE": "1"}
    command = [str(tokcast), "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as server:
        try:
            assert server.stdout is not None
            found = re.search(r"http://\S+", server.stdout.readline())
            assert found is not None
            print(asyncio.run(load(found[0], psutil.Process(server.pid))))
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
