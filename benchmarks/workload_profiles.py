"""Make predictor/data/profiles.json: quantiles of workloads, from traces of real use.

    python benchmarks/workload_profiles.py FOLDER [--replay]

With --replay nothing is written: tasks that are drawn are held against those of the trace, by the
seconds that one model takes over them on one host. FOLDER holds `profiles.json` and the traces it
names: CSVs with the columns task_id, turn, t_s, input_tokens, cached_prefix_tokens and
output_tokens. A workload without a trace takes the quantiles that `profiles.json` has.
"""

import csv
import gzip
import json
import re
import sys
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from random import Random

from tokcast.fits.released import released
from tokcast.hosts.match import find
from tokcast.measurements.traces.assemble import assemble
from tokcast.measurements.traces.call import Call
from tokcast.predictor.agents.profile import profile
from tokcast.predictor.agents.quantiles import quantile
from tokcast.predictor.agents.simulate import Reading, Writing, middle, simulate
from tokcast.predictor.curve import decode_curve
from tokcast.predictor.ledger import Workload
from tokcast.predictor.model import model_spec
from tokcast.predictor.prefill_curve import prefill_curve
from tokcast.predictor.presets import names, preset
from tokcast.predictor.roofline import Question
from tokcast.predictor.sources import open_model
from tokcast.predictor.terms import Run

MODEL, HOST = "qwen3-30b-a3b@Q4_K_M", "RTX 4090"
OUT = Path(__file__).parents[1] / "predictor" / "data" / "profiles.json"
PROBABILITIES = (0, 0.01, 0.05, *(i / 10 for i in range(1, 10)), 0.25, 0.75, 0.95, 0.99, 0.995, 1)
PROBABILITIES = tuple(sorted(PROBABILITIES))
# A cache counts as lost where so many tokens, and so large a share of the prompt, were read again.
LOST_TOKENS, LOST_SHARE = 256, 0.1
# Published quantiles end at the 99th percentile: beyond it nothing is made up.
PUBLISHED = {"p5": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99}
Row = tuple[int, float | None, int, int, int]


# Where a file holds more than one workload: which of its tasks, by their names, are meant.
MEANT = {
    "coding-agent": re.compile(r"[^/]+"),
    "coding-agent-small": re.compile(r".*__.*"),
    "assistant-agent": re.compile(r"task_.*"),
    "terminal-agent": re.compile(r".*claude.*"),
}


def tasks_of(path: Path, meant: re.Pattern[str]) -> list[list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        for r in csv.DictReader(file):
            if r["input_tokens"] and r["output_tokens"] and meant.fullmatch(r["task_id"]):
                t_s = float(r["t_s"]) if r["t_s"] else None
                lengths = (int(r[k] or 0) for k in ("input_tokens", "cached_prefix_tokens"))
                row = (int(r["turn"] or 0), t_s, *lengths, int(r["output_tokens"]))
                found[r["task_id"]].append(row)  # type: ignore[arg-type]
    return [sorted(rows) for rows in found.values()]


def listed(values: list[float], digits: int = 0) -> list[float]:
    ranked = sorted(values) or [0.0]
    return [round(quantile(ranked, p), digits) for p in PROBABILITIES]


def published(quantiles: dict[str, float | None], least: float = 0) -> list[float]:
    known = [(0.0, least)]
    known += [(p, v) for k, p in PUBLISHED.items() if (v := quantiles.get(k)) is not None]
    known.append((1.0, known[-1][1]))
    found = []
    for p in PROBABILITIES:
        i = max(j for j, (q, _) in enumerate(known[:-1]) if q <= p)
        (p0, v0), (p1, v1) = known[i], known[i + 1]
        found.append(round(v0 + (v1 - v0) * (p - p0) / (p1 - p0)))
    return found


def from_trace(tasks: list[list[Row]]) -> dict[str, object]:
    growth, shares = [], []
    for rows in tasks:
        for (_, _, before, _, answer), (_, _, now, cached, _) in pairwise(rows):
            growth.append(now - before - answer)
            again = max(now - cached - answer, 0) - max(growth[-1], 0)
            if again > max(LOST_TOKENS, LOST_SHARE * now):
                shares.append(again / now)
    return {
        "first_input": listed([rows[0][2] for rows in tasks]),
        "growth": listed(growth),
        "output": listed([row[4] for rows in tasks for row in rows]),
        "turns": listed([len(rows) for rows in tasks]),
        "lost": round(len(shares) / max(len(growth), 1), 4),
        "lost_share": listed(shares, 3),
    }


def from_quantiles(q: dict[str, dict[str, float | None]]) -> dict[str, object]:
    return {
        "first_input": published(q["input_tokens_first_turn"], 1),
        "growth": published(q["new_input_less_previous_output_per_turn"]),
        "output": published(q["output_tokens_per_turn"], 1),
        "turns": published(q["turns_per_task"], 1),
        "lost": 0.0,
        "lost_share": [0.0] * len(PROBABILITIES),
    }


def wait_of(plain: dict) -> tuple[list[float] | None, str]:
    """Return waits that tools or people took; arrivals, which hold the answer's time, are left."""
    kind = plain.get("seconds_between_turns_is") or ""
    quantiles = plain["quantiles"].get("seconds_between_turns")
    if not quantiles or "arrival" in kind:
        return None, ""
    return [float(v) for v in published(quantiles)], kind


def profiles_of(folder: Path) -> dict[str, dict]:
    listed = json.loads((folder / "profiles.json").read_bytes())["profiles"]
    return {p["name"]: p for p in listed}


def traced(folder: Path, name: str, plain: dict) -> list[list[Row]]:
    if not plain["trace_file"]:
        return []
    tasks = tasks_of(folder / plain["trace_file"], MEANT.get(name, re.compile(".*")))
    # Threads of one call beside a long one are titles and summaries, no tasks.
    return [rows for rows in tasks if len(rows) > 1] if name == "terminal-agent" else tasks


def replay(folder: Path) -> None:
    known = profiles_of(folder)
    print("workload             drawn p50  replayed  drawn p90  replayed  (seconds a task)")
    for name in names():
        rows = traced(folder, name, known[preset(name).profile])
        if not rows:
            continue
        calls = [
            Call(str(i), n_input, n_output, start_s=None, n_cached=cached)
            for i, task in enumerate(rows)
            for _, _, n_input, cached, n_output in task
        ]
        own, random = assemble(name, "", calls).tasks, Random(1)
        drawn = tuple(profile(name).draw(random) for _ in range(1000))
        a, b = (middle(t.seconds for t in simulate(x, 1 << 20, *_pace())) for x in (drawn, own))
        print(f"{name:<20} {a.p50:9.1f} {b.p50:9.1f} {a.p90:10.1f} {b.p90:9.1f}")


def _pace() -> tuple[Reading, Writing]:
    spec = model_spec(open_model(MODEL, offline=True))
    q = Question(Workload("prefill"), find(HOST), Run())
    reading, writing = prefill_curve(spec, q, released()), decode_curve(spec, q, released())
    return reading.seconds, lambda depth: 1 / writing.at(depth)[0]


def main(folder: Path) -> None:
    known = profiles_of(folder)
    made = {}
    for name in names():
        p = known[preset(name).profile]
        tasks = traced(folder, name, p)
        body = from_trace(tasks) if tasks else from_quantiles(p["quantiles"])
        wait, kind = wait_of(p)
        made[name] = {
            **body,
            "wait_seconds": wait,
            "wait_kind": kind,
            "n_tasks": len(tasks) or p["n_tasks"],
            "n_turns": sum(map(len, tasks)) or p["n_requests"],
            "source": p["trace_file"] or "quantiles as computed from the source",
        }
    head = {"schema": 1, "probabilities": PROBABILITIES}
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in made.items())
    OUT.write_text(f'{json.dumps(head)[:-1]}, "profiles": {{\n{lines}\n}}}}\n', encoding="utf-8")


if __name__ == "__main__":
    (replay if "--replay" in sys.argv else main)(Path(sys.argv[1]))
