"""Formats with a line or a cell row a request: lengths, times and block identifiers."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tokcast.measurements.traces.call import (
    Call,
    maybe_whole,
    seconds,
    text_tokens,
    whole,
)
from tokcast.predictor.errors import InputError

Record = Mapping[str, Any]
MOONCAKE_BLOCK, BAILIAN_BLOCK = 512, 16
MS = 1e-3


def own(r: Record, n: int) -> Call:
    """Return a call of tokcast's own CSV of traces."""
    return Call(
        session=str(r.get("task_id") or n),
        n_input=maybe_whole(r.get("input_tokens"), "input_tokens") or 0,
        n_output=maybe_whole(r.get("output_tokens"), "output_tokens") or 0,
        turn=maybe_whole(r.get("turn"), "turn"),
        start_s=seconds(r.get("t_s"), "t_s"),
        n_cached=maybe_whole(r.get("cached_prefix_tokens"), "cached_prefix_tokens"),
    )


def azure(r: Record, n: int) -> Call:
    """Return a call of Azure's CSV, which inference-perf reads as well."""
    return Call(
        session=str(n),
        n_input=whole(r.get("ContextTokens"), "ContextTokens"),
        n_output=whole(r.get("GeneratedTokens"), "GeneratedTokens"),
        start_s=clock(r.get("TIMESTAMP"), "TIMESTAMP"),
    )


def burstgpt(r: Record, n: int) -> Call | None:
    """Return a call of BurstGPT's CSV; an answer of nothing is a failure and no call."""
    n_output = whole(r.get("Response tokens"), "Response tokens")
    if n_output == 0:
        return None
    start = seconds(r.get("Timestamp"), "Timestamp")
    took = seconds(r.get("Elapsed time"), "Elapsed time")
    return Call(
        session=str(r.get("Session ID") or n),
        n_input=whole(r.get("Request tokens"), "Request tokens"),
        n_output=n_output,
        start_s=start,
        end_s=None if start is None or took is None else start + took,
    )


def mooncake(r: Record, n: int) -> Call:
    """Return a call of Mooncake's lines, or of AIPerf's and GenAI-Perf's extension of them."""
    text = next((r[k] for k in ("messages", "text_input", "payload") if r.get(k)), None)
    counted = r.get("input_length")
    n_input = whole(counted, "input_length") if counted is not None else text_tokens(text)
    session = r.get("session_id")
    return Call(
        session=str(n if session is None else session),
        n_input=n_input + (text_tokens(r.get("tools")) if counted is None else 0),
        n_output=maybe_whole(r.get("output_length"), "output_length") or 0,
        start_s=seconds(r.get("timestamp"), "timestamp", MS),
        wait_seconds=seconds(r.get("delay"), "delay", MS),
        blocks=_blocks(r),
        block_size=MOONCAKE_BLOCK,
        is_estimated=counted is None,
    )


class Bailian:
    """Calls of Qwen-Bailian's lines: a chat continues the one that its parent names."""

    def __init__(self) -> None:
        self._roots: dict[str, str] = {}

    def __call__(self, r: Record, n: int) -> Call:
        """Return the call of a line."""
        chat, parent = str(r["chat_id"]), str(r["parent_chat_id"])
        root = chat if parent == "-1" else self._roots.get(parent)
        if root is None:
            raise InputError(
                f"chat {chat!r} continues {parent!r}, which is missing; expected it before"
            )
        self._roots[chat] = root
        return Call(
            session=root,
            n_input=whole(r.get("input_length"), "input_length"),
            n_output=whole(r.get("output_length"), "output_length"),
            start_s=seconds(r.get("timestamp"), "timestamp"),
            blocks=_blocks(r),
            block_size=BAILIAN_BLOCK,
        )


def ragpulse(r: Record, n: int) -> Call:
    """Return a call of RAGPulse's lines; its pieces' lengths stand elsewhere."""
    return Call(
        session=str(r.get("session_id", n)),
        n_input=whole(r.get("input_length"), "input_length"),
        n_output=whole(r.get("output_length"), "output_length"),
        start_s=clock(r.get("timestamp"), "timestamp"),
        n_cached=0,
    )


def profile_export(r: Record, n: int) -> Call:
    """Return a call of AIPerf's `profile_export.jsonl`."""
    about, metrics = r["metadata"], r["metrics"]
    return Call(
        session=str(about.get("conversation_id") or n),
        n_input=whole(_value(metrics, "input_sequence_length"), "input_sequence_length"),
        n_output=whole(_value(metrics, "output_sequence_length"), "output_sequence_length"),
        turn=maybe_whole(about.get("turn_index"), "turn_index"),
        start_s=seconds(about.get("request_start_ns"), "request_start_ns", 1e-9),
        end_s=seconds(about.get("request_end_ns"), "request_end_ns", 1e-9),
    )


def swarm(r: Record, n: int) -> Call:
    """Return a call of agentic-swarm-bench's lines, whose time is the answer's end."""
    counted = r.get("prompt_tokens")
    return Call(
        session="0",
        n_input=text_tokens(r.get("messages")) if not counted else whole(counted, "prompt_tokens"),
        n_output=whole(r.get("completion_tokens"), "completion_tokens"),
        turn=maybe_whole(r.get("seq"), "seq"),
        is_estimated=not counted,
    )


def agentperf(r: Record, n: int) -> Call:
    """Return a call of agentperf-local's lines; the tool's delay comes after the answer."""
    return Call(
        session=str(r["task_id"]),
        n_input=whole(r.get("recorded_prompt_tokens"), "recorded_prompt_tokens"),
        n_output=whole(r.get("recorded_completion_tokens"), "recorded_completion_tokens"),
        turn=maybe_whole(r.get("conversation_idx"), "conversation_idx"),
    )


def _blocks(r: Record) -> tuple[Any, ...]:
    found = r.get("hash_ids") or ()
    if not isinstance(found, list | tuple):
        raise InputError("hash_ids: expected a list of identifiers")
    return tuple(map(str, found))


def _value(metrics: Record, name: str) -> object:
    value = metrics.get(name)
    return value.get("value") if isinstance(value, Mapping) else value


def clock(value: object, name: str) -> float | None:
    """Return a time of day or a number as seconds; raises InputError for what is neither."""
    if not isinstance(value, str):
        return seconds(value, name)
    try:
        return float(value)
    except ValueError:
        pass
    # Seven digits of a second are one more than Python reads.
    text = value.strip().replace("Z", "+00:00")
    head, dot, tail = text.partition(".")
    digits = tail[: len(tail) - len(tail.lstrip("0123456789"))]
    try:
        found = datetime.fromisoformat(head + dot + digits[:6] + tail[len(digits) :])
    except ValueError:
        raise InputError(f"{name} is {value[:40]!r}: expected a time") from None
    return found.replace(tzinfo=found.tzinfo or UTC).timestamp()
