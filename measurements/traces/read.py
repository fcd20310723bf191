"""A trace file, whatever of the known formats it has, as tasks."""

import csv
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tokcast.measurements.schema import open_text
from tokcast.measurements.traces import logs, requests, sessions
from tokcast.measurements.traces.assemble import Trace, assemble
from tokcast.measurements.traces.call import Call
from tokcast.predictor.errors import InputError

MAX_BYTES = 1 << 30
Record = Mapping[str, Any]
Found = Call | None | Iterable[Call]


@dataclass(frozen=True, slots=True)
class Format:
    """A format: its name, what its first record has, and how a record becomes calls.

    A record has to have all of `has`, each `a|b` one of them, a dot leading into a mapping.
    """

    name: str
    has: tuple[str, ...]
    reader: Callable[[], Callable[[Record, int], Found]]


# The first that fits is taken: the more particular stand before the more general.
FORMATS = (
    Format("tokcast CSV", ("task_id", "input_tokens", "output_tokens"), lambda: requests.own),
    Format("Azure CSV", ("ContextTokens", "GeneratedTokens"), lambda: requests.azure),
    Format("BurstGPT CSV", ("Request tokens", "Response tokens"), lambda: requests.burstgpt),
    Format("Qwen-Bailian", ("chat_id", "parent_chat_id", "input_length"), requests.Bailian),
    Format("RAGPulse", ("input_length", "hash_ids.sys_prompt"), lambda: requests.ragpulse),
    Format("AIPerf multi-turn", ("turns",), lambda: sessions.aiperf_turns),
    Format("AIPerf inputs", ("payloads",), lambda: sessions.aiperf_payloads),
    Format("AIPerf profile export", ("metadata", "metrics"), lambda: requests.profile_export),
    Format("GenAI-Perf profile export", ("requests", "experiment"), lambda: sessions.genai_perf),
    Format("kv-cache-tester", ("block_size", "requests"), lambda: sessions.weka),
    Format("trie", ("input_prompt_length", "assistant_response_length"), lambda: sessions.trie),
    Format("agentperf-local", ("recorded_prompt_tokens", "task_id"), lambda: requests.agentperf),
    Format("agentic-swarm-bench", ("seq", "completion_tokens"), lambda: requests.swarm),
    Format("ShareGPT", ("conversations",), lambda: sessions.sharegpt),
    Format(
        "OpenTelemetry spans",
        ("resourceSpans|traceId|trace_id",),
        logs.Spans,
    ),
    Format(
        "Anthropic-style usage",
        ("message.usage.input_tokens|usage.cache_read_input_tokens|sessionId",),
        lambda: logs.anthropic,
    ),
    Format(
        "Mooncake",
        ("input_length|text_input|messages|payload", "output_length|hash_ids|delay|session_id"),
        lambda: requests.mooncake,
    ),
    Format("OpenAI-style log", ("messages|usage|response",), lambda: logs.openai),
)


def read_trace(path: str | Path) -> Trace:
    """Return the tasks of a trace file.

    Raises InputError for a file that can't be read, a format that is not known, lengths and times
    that make no sense, missing turns and clocks that run backwards, with the line.
    """
    path = Path(path)
    # `Path.is_file` raises for a name that is too long to be one.
    if os.path.isfile(path) and path.stat().st_size > MAX_BYTES:  # noqa: PTH113
        raise InputError(f"{path}: larger than {MAX_BYTES >> 20} MiB; expected a part of the trace")
    text = open_text(path).read()
    records = _records(path, text)
    first = next(records, None)
    if first is None:
        raise InputError(f"{path}: holds no records; expected a trace of requests")
    format_ = _format_of(path, first[0])
    reader = format_.reader()
    calls = [call for record in _again(first, records) for call in _calls(path, reader, *record)]
    return assemble(str(path), format_.name, calls)


def _again(
    first: tuple[Record, int], rest: Iterator[tuple[Record, int]]
) -> Iterator[tuple[Record, int]]:
    yield first
    yield from rest


def _calls(
    path: Path, reader: Callable[[Record, int], Found], record: Record, n: int
) -> list[Call]:
    try:
        found = reader(record, n)
        listed = [found] if isinstance(found, Call) else list(found or ())
    except InputError as error:
        raise InputError(f"{path}, record {n}: {error}") from None
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise InputError(f"{path}, record {n}: {error!r}; expected it as in the first") from None
    return [replace(call, where=f", record {n}") for call in listed]


def _format_of(path: Path, record: Record) -> Format:
    for format_ in FORMATS:
        if all(_has(record, names) for names in format_.has):
            return format_
    # What a row has beyond its header stands under None.
    keys = ", ".join([k for k in record if k][:8]) or "nothing"
    names = ", ".join(f.name for f in FORMATS)
    raise InputError(f"{path}: its first record has {keys[:120]}; expected one of: {names}")


def _has(record: Record, names: str) -> bool:
    return any(_leads(record, name) for name in names.split("|"))


def _leads(record: object, name: str) -> bool:
    for key in name.split("."):
        if not isinstance(record, Mapping) or key not in record:
            return False
        record = record[key]
    return True


def _records(path: Path, text: str) -> Iterator[tuple[Record, int]]:
    """Yield records with their number from 1: CSV rows, JSON lines, or what a JSON file lists."""
    start = text.lstrip()[:1]
    if start not in ("{", "["):
        try:
            yield from ((row, i) for i, row in enumerate(csv.DictReader(text.splitlines()), 1))
        except csv.Error as error:
            raise InputError(f"{path}: no readable CSV ({error}); expected a trace") from None
        return
    try:
        whole = json.loads(text)
    except ValueError:
        yield from _json_lines(path, text)
        return
    listed = whole if isinstance(whole, list) else _inner(whole)
    for i, record in enumerate(listed, 1):
        if not isinstance(record, Mapping):
            raise InputError(f"{path}, record {i}: expected a JSON object")
        yield record, i


def _inner(whole: Record) -> list[Any]:
    """Return the records that a JSON file holds under a key, else the file as one."""
    for key in ("data", "experiments", "traces"):
        if isinstance(whole.get(key), list):
            return list(whole[key])
    return [whole]


def _json_lines(path: Path, text: str) -> Iterator[tuple[Record, int]]:
    for i, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            raise InputError(f"{path}, line {i}: expected a JSON object a line")
        yield record, i
