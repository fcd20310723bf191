"""Formats with a record a session, whose turns stand in a list."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tokcast.measurements.traces.call import Call, maybe_whole, seconds, text_tokens, whole
from tokcast.measurements.traces.requests import MS
from tokcast.predictor.errors import InputError

Record = Mapping[str, Any]


def aiperf_turns(r: Record, n: int) -> Iterator[Call]:
    """Yield the calls of an AIPerf session; a prompt holds all turns before it."""
    context = 0
    session = str(r.get("session_id", n))
    for i, turn in enumerate(_list(r.get("turns"), "turns")):
        words = turn if isinstance(turn, Mapping) else {"text": turn}
        context += text_tokens(words.get("text") or words.get("texts"))
        n_output = maybe_whole(words.get("output_length"), "output_length") or 0
        yield Call(
            session=session,
            n_input=context,
            n_output=n_output,
            turn=i,
            start_s=seconds(words.get("timestamp"), "timestamp", MS),
            wait_seconds=seconds(words.get("delay"), "delay", MS),
            is_estimated=True,
        )
        context += n_output


def aiperf_payloads(r: Record, n: int) -> Iterator[Call]:
    """Yield the calls of a session in AIPerf's or GenAI-Perf's `inputs.json`."""
    session = str(r.get("session_id", n))
    for i, body in enumerate(_list(r.get("payloads") or r.get("payload"), "payloads")):
        yield Call(
            session=session,
            n_input=text_tokens(body.get("messages") or body.get("prompt"))
            + text_tokens(body.get("tools")),
            n_output=maybe_whole(
                body.get("max_completion_tokens") or body.get("max_tokens"), "max_tokens"
            )
            or 0,
            turn=i,
            is_estimated=True,
        )


def genai_perf(r: Record, n: int) -> Iterator[Call]:
    """Yield the calls of an experiment in GenAI-Perf's `profile_export.json`."""
    for i, request in enumerate(_list(r.get("requests"), "requests")):
        ends = _list(request.get("response_timestamps"), "response_timestamps")
        yield Call(
            session=f"{n}/{i}",
            n_input=text_tokens(request.get("request_inputs")),
            n_output=text_tokens(request.get("response_outputs")),
            start_s=seconds(request.get("timestamp"), "timestamp", 1e-9),
            end_s=seconds(ends[-1], "response_timestamps", 1e-9) if ends else None,
            is_estimated=True,
        )


def weka(r: Record, n: int) -> Iterator[Call]:
    """Yield the calls of a kv-cache-tester conversation; helper agents are sessions of their own.

    Identifiers are the conversation's own, so the same text of another counts as new.
    """
    name = str(r.get("id", n))
    size = whole(r.get("block_size"), "block_size")
    yield from _weka(_list(r.get("requests"), "requests"), name, size, name)


def _weka(requests: Sequence[Any], session: str, size: int, scope: str) -> Iterator[Call]:
    for i, r in enumerate(requests):
        if r.get("type") == "subagent" or "requests" in r:
            yield from _weka(_list(r.get("requests"), "requests"), f"{session}/{i}", size, scope)
            continue
        start = seconds(r.get("t"), "t")
        took = seconds(r.get("api_time"), "api_time")
        yield Call(
            session=session,
            n_input=whole(r.get("in"), "in"),
            n_output=whole(r.get("out"), "out"),
            start_s=start,
            end_s=None if start is None or took is None else start + took,
            wait_seconds=seconds(r.get("think_time"), "think_time"),
            blocks=tuple(map(str, r.get("hash_ids") or ())),
            block_size=size,
            scope=scope,
        )


def trie(r: Record, n: int) -> Iterator[Call]:
    """Yield the calls of a task in trie's lines; the last answer comes after the last tool."""
    answers = [*_list(r.get("assistant_response_length"), "assistant_response_length")]
    tools = _list(r.get("tool_call_output_length"), "tool_call_output_length")
    waits = _list(r.get("tool_call_latency"), "tool_call_latency")
    last = r.get("final_assistant_response_length")
    if last is not None:
        answers.append(last)
    if not len(answers) - 1 <= len(tools) <= len(answers):
        raise InputError(
            f"{len(answers)} answers and {len(tools)} tool results: turns are missing; expected"
            " a result between every two answers"
        )
    context = whole(r.get("input_prompt_length"), "input_prompt_length")
    for i, answer in enumerate(answers):
        if i:
            context += whole(tools[i - 1], "tool_call_output_length")
        n_output = whole(answer, "assistant_response_length")
        wait = seconds(waits[i - 1], "tool_call_latency") if 0 < i <= len(waits) else None
        yield Call(str(n), context, n_output, turn=i, wait_seconds=wait)
        context += n_output


def sharegpt(r: Record, n: int) -> Iterator[Call]:
    """Yield the calls of a ShareGPT conversation: one for each answer."""
    session = str(r.get("id", n))
    context, turn = 0, 0
    for said in _list(r.get("conversations"), "conversations"):
        length = text_tokens(said.get("value"))
        if said.get("from") in ("gpt", "chatgpt", "assistant", "bing", "bard"):
            yield Call(session, context, length, turn=turn, is_estimated=True)
            turn += 1
        context += length


def _list(value: object, name: str) -> Sequence[Any]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise InputError(f"{name}: expected a list")
    return value
