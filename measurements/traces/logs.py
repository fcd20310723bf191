"""Logs of calls to a model's API: usage that a provider counted, chat messages, spans."""

from collections.abc import Iterator, Mapping
from typing import Any

from tokcast.measurements.traces.call import Call, maybe_whole, seconds, text_tokens
from tokcast.measurements.traces.requests import clock
from tokcast.predictor.errors import InputError

Record = Mapping[str, Any]
_SESSION = ("session_id", "sessionId", "conversation_id", "chat_id")


def anthropic(r: Record, n: int) -> Call | None:
    """Return the call that a line with Anthropic-style usage tells of, None for other lines.

    Coding agents' session files have it; the prompt is what was read, written to and found in
    the cache together.
    """
    message = r.get("message")
    usage = message.get("usage") if isinstance(message, Mapping) else r.get("usage")
    if not isinstance(usage, Mapping) or r.get("isSidechain"):
        return None
    found = maybe_whole(usage.get("cache_read_input_tokens"), "cache_read_input_tokens") or 0
    written = usage.get("cache_creation_input_tokens")
    made = maybe_whole(written, "cache_creation_input_tokens") or 0
    read = maybe_whole(usage.get("input_tokens"), "input_tokens") or 0
    return Call(
        session=_session(r),
        n_input=read + made + found,
        n_output=maybe_whole(usage.get("output_tokens"), "output_tokens") or 0,
        end_s=None,
        start_s=clock(r.get("timestamp"), "timestamp"),
        n_cached=found,
    )


def openai(r: Record, n: int) -> Iterator[Call]:
    """Yield the calls of an OpenAI-style log: a line with usage is one, else one an answer."""
    usage = r.get("usage") or (r.get("response") or {}).get("usage")
    if isinstance(usage, Mapping):
        yield _counted(r, usage, n)
        return
    messages = r.get("messages")
    if not isinstance(messages, list):
        raise InputError("expected messages or usage in every record")
    context, turn = text_tokens(r.get("tools")), 0
    session = _session(r) or str(n)
    for said in messages:
        length = text_tokens(said)
        if isinstance(said, Mapping) and said.get("role") == "assistant":
            yield Call(session, context, length, turn=turn, is_estimated=True)
            turn += 1
        context += length


def _counted(r: Record, usage: Record, n: int) -> Call:
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
    prompt = usage.get("prompt_tokens", usage.get("input_tokens"))
    answer = usage.get("completion_tokens", usage.get("output_tokens"))
    return Call(
        session=_session(r) or "0",
        n_input=maybe_whole(prompt, "prompt_tokens") or 0,
        n_output=maybe_whole(answer, "completion_tokens") or 0,
        start_s=clock(r.get("timestamp", r.get("created")), "timestamp"),
        n_cached=maybe_whole(details.get("cached_tokens"), "cached_tokens"),
    )


class Spans:
    """Calls of OpenTelemetry spans; a session is a trace."""

    def __call__(self, r: Record, n: int) -> Iterator[Call]:
        """Yield the call of a span, or of all spans of an export's envelope."""
        for scoped in r.get("resourceSpans", ()):
            for inner in scoped.get("scopeSpans", ()):
                for span in inner.get("spans", ()):
                    yield from self(span, n)
        attributes = _attributes(r.get("attributes"))
        prompt = _first(attributes, "input_tokens", "prompt_tokens")
        if prompt is None:
            return
        answer = _first(attributes, "output_tokens", "completion_tokens")
        yield Call(
            session=str(r.get("traceId") or r.get("trace_id") or "0"),
            n_input=maybe_whole(prompt, "gen_ai.usage.input_tokens") or 0,
            n_output=maybe_whole(answer, "gen_ai.usage.output_tokens") or 0,
            start_s=_nanoseconds(r, "startTimeUnixNano", "start_time"),
            end_s=_nanoseconds(r, "endTimeUnixNano", "end_time"),
        )


def _first(attributes: Record, *names: str) -> object:
    found = (attributes.get(f"gen_ai.usage.{name}") for name in names)
    return next((value for value in found if value is not None), None)


def _attributes(found: object) -> dict[str, object]:
    """Return attributes by name, from a mapping or from OTLP's list of keys and values."""
    if isinstance(found, Mapping):
        return dict(found)
    if not isinstance(found, list):
        return {}
    return {
        a["key"]: next(iter(a["value"].values()), None)
        for a in found
        if isinstance(a, Mapping) and isinstance(a.get("value"), Mapping) and "key" in a
    }


def _nanoseconds(r: Record, otlp: str, plain: str) -> float | None:
    value = r.get(otlp)
    return seconds(value, otlp, 1e-9) if value is not None else clock(r.get(plain), plain)


def _session(r: Record) -> str:
    return str(next((r[key] for key in _SESSION if r.get(key) is not None), ""))
