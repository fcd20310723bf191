"""Traces of every format that users have, as tasks with hand-counted lengths."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tokcast.measurements.traces.assemble import Trace
from tokcast.measurements.traces.read import FORMATS, read_trace
from tokcast.predictor.agents.task import Turn
from tokcast.predictor.errors import InputError

# Forty characters: ten tokens by the estimate for text.
TEN = "a" * 40


def lines(*records: dict[str, Any]) -> str:
    return "\n".join(json.dumps(r) for r in records) + "\n"


def read(tmp_path: Path, text: str) -> Trace:
    path = tmp_path / "trace"
    path.write_text(text, encoding="utf-8")
    return read_trace(path)


def shape(trace: Trace) -> list[list[tuple[int, int, int]]]:
    return [[(t.n_input, t.n_cached, t.n_output) for t in task] for task in trace.tasks]


def profiled(session: str, turn: int, n_in: int, n_out: int, start: int) -> dict[str, Any]:
    return {
        "metadata": {
            "conversation_id": session,
            "turn_index": turn,
            "request_start_ns": start * 10**9,
            "request_end_ns": (start + 2) * 10**9,
        },
        "metrics": {
            "input_sequence_length": {"value": n_in, "unit": "tokens"},
            "output_sequence_length": {"value": n_out, "unit": "tokens"},
        },
    }


def used(n: int, made: int, found: int, answer: int, second: int) -> dict[str, Any]:
    usage = {
        "input_tokens": n,
        "cache_creation_input_tokens": made,
        "cache_read_input_tokens": found,
        "output_tokens": answer,
    }
    stamp = f"2026-01-01T00:00:{second:02}.000Z"
    return {"sessionId": "s", "timestamp": stamp, "message": {"usage": usage}}


def span(trace: str, n_in: int, n_out: int, second: int) -> dict[str, Any]:
    found = {"gen_ai.usage.input_tokens": n_in, "gen_ai.usage.output_tokens": n_out}
    return {
        "traceId": trace,
        "attributes": [{"key": k, "value": {"intValue": str(v)}} for k, v in found.items()],
        "startTimeUnixNano": str(second * 10**9),
        "endTimeUnixNano": str((second + 1) * 10**9),
    }


# Name of the format, text, and (input, cached, output) of each turn of each task.
CASES = {
    "tokcast CSV": (
        "trace,task_id,turn,t_s,input_tokens,new_input_tokens,cached_prefix_tokens,output_tokens\n"
        "x,a,0,0,100,100,0,10\nx,a,1,5,150,50,100,7\nx,b,0,1,20,20,0,3\n",
        # The answer of 10 came back, and is still in the cache.
        [[(100, 0, 10), (150, 110, 7)], [(20, 0, 3)]],
    ),
    "Azure CSV": (
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        "2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n",
        [[(374, 0, 44)], [(396, 0, 109)]],
    ),
    "BurstGPT CSV": (
        "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,"
        "Log Type\n5,9,1.5,m,472,18,490,API\n45,9,2,m,500,0,500,API\n118,9,2,m,1000,30,1030,API\n",
        # An answer of nothing is a failure.
        [[(472, 0, 18), (1000, 490, 30)]],
    ),
    "Mooncake": (
        lines(
            {"timestamp": 0, "input_length": 1100, "output_length": 50, "hash_ids": [1, 2, 3]},
            {"timestamp": 900, "input_length": 2000, "output_length": 9, "hash_ids": [1, 2, 7, 8]},
        ),
        [[(1100, 0, 50)], [(2000, 1024, 9)]],
    ),
    "AIPerf multi-turn": (
        lines(
            {
                "session_id": "a",
                "turns": [
                    {"text": TEN, "output_length": 5},
                    {"text": TEN, "delay": 1500, "output_length": 6},
                ],
            }
        ),
        [[(10, 0, 5), (25, 15, 6)]],
    ),
    "AIPerf inputs": (
        json.dumps(
            {
                "data": [
                    {
                        "session_id": "a",
                        "payloads": [
                            {"messages": [{"role": "user", "content": TEN}], "max_tokens": 4},
                            {
                                "messages": [{"role": "user", "content": TEN * 2}],
                                "max_completion_tokens": 8,
                            },
                        ],
                    }
                ]
            }
        ),
        [[(10, 0, 4), (20, 14, 8)]],
    ),
    "AIPerf profile export": (
        lines(profiled("a", 0, 100, 20, 0), profiled("a", 1, 200, 30, 5)),
        [[(100, 0, 20), (200, 120, 30)]],
    ),
    "GenAI-Perf profile export": (
        json.dumps(
            {
                "experiments": [
                    {
                        "experiment": {"mode": "concurrency"},
                        "requests": [
                            {
                                "timestamp": 10**9,
                                "request_inputs": {"payload": TEN},
                                "response_timestamps": [2 * 10**9],
                                "response_outputs": [TEN],
                            }
                        ],
                    }
                ]
            }
        ),
        [[(14, 0, 10)]],
    ),
    "Qwen-Bailian": (
        lines(
            {
                "chat_id": 1,
                "parent_chat_id": -1,
                "timestamp": 0,
                "input_length": 40,
                "output_length": 8,
                "type": "text",
                "turn": 1,
                "hash_ids": [5, 6, 7],
            },
            {
                "chat_id": 2,
                "parent_chat_id": 1,
                "timestamp": 3,
                "input_length": 64,
                "output_length": 9,
                "type": "text",
                "turn": 2,
                "hash_ids": [5, 6, 8, 9],
            },
        ),
        # Two blocks of 16 and the part of a third that the first prompt had, then its answer.
        [[(40, 0, 8), (64, 48, 9)]],
    ),
    "kv-cache-tester": (
        json.dumps(
            {
                "id": "c",
                "block_size": 64,
                "requests": [
                    {"t": 0, "type": "n", "in": 130, "out": 5, "hash_ids": [1, 2], "api_time": 2},
                    {
                        "type": "subagent",
                        "requests": [{"t": 0, "in": 70, "out": 1, "hash_ids": [9]}],
                    },
                    {"t": 9, "type": "n", "in": 260, "out": 6, "hash_ids": [1, 2, 3, 4]},
                ],
            }
        ),
        [[(130, 0, 5), (260, 135, 6)], [(70, 0, 1)]],
    ),
    "trie": (
        lines(
            {
                "num_turns": 2,
                "input_prompt_length": 100,
                "assistant_response_length": [10, 20],
                "tool_call_output_length": [30, 40],
                "tool_call_latency": [0.5, 0.25],
                "final_assistant_response_length": 50,
            }
        ),
        [[(100, 0, 10), (140, 110, 20), (200, 160, 50)]],
    ),
    "RAGPulse": (
        lines(
            {
                "timestamp": "2025-04-01 10:00:00",
                "input_length": 90,
                "output_length": 9,
                "hash_ids": {"sys_prompt": [1]},
                "session_id": 4,
            },
        ),
        [[(90, 0, 9)]],
    ),
    "OpenAI-style log": (
        lines(
            {
                "messages": [],
                "usage": {
                    "prompt_tokens": 60,
                    "completion_tokens": 6,
                    "prompt_tokens_details": {"cached_tokens": 0},
                },
            },
            {
                "messages": [],
                "usage": {
                    "prompt_tokens": 99,
                    "completion_tokens": 7,
                    "prompt_tokens_details": {"cached_tokens": 32},
                },
            },
        ),
        [[(60, 0, 6), (99, 32, 7)]],
    ),
    "Anthropic-style usage": (
        lines(
            used(3, 1000, 0, 40, 0), {"sessionId": "s", "type": "user"}, used(5, 200, 1003, 9, 30)
        ),
        [[(1003, 0, 40), (1208, 1043, 9)]],
    ),
    "ShareGPT": (
        json.dumps(
            [
                {
                    "id": "x_0",
                    "conversations": [
                        {"from": "human", "value": TEN},
                        {"from": "gpt", "value": TEN},
                        {"from": "human", "value": TEN * 2},
                        {"from": "gpt", "value": TEN},
                    ],
                }
            ]
        ),
        [[(10, 0, 10), (40, 20, 10)]],
    ),
    "OpenTelemetry spans": (
        json.dumps(
            {
                "resourceSpans": [
                    {"scopeSpans": [{"spans": [span("t", 50, 5, 0), span("t", 80, 6, 4)]}]}
                ]
            }
        ),
        [[(50, 0, 5), (80, 55, 6)]],
    ),
    "agentic-swarm-bench": (
        lines(
            {
                "seq": 0,
                "timestamp": 5.0,
                "prompt_tokens": 70,
                "completion_tokens": 7,
                "ttft_ms": 9,
                "total_time_s": 2,
            },
            {
                "seq": 1,
                "timestamp": 9.0,
                "prompt_tokens": 90,
                "completion_tokens": 8,
                "ttft_ms": 9,
                "total_time_s": 1,
            },
        ),
        [[(70, 0, 7), (90, 77, 8)]],
    ),
    "agentperf-local": (
        lines(
            {
                "task_id": "t",
                "conversation_idx": 0,
                "recorded_prompt_tokens": 11,
                "recorded_completion_tokens": 2,
                "simulated_tool_delay_ms_after": 100,
            },
            {
                "task_id": "t",
                "conversation_idx": 1,
                "recorded_prompt_tokens": 30,
                "recorded_completion_tokens": 3,
                "simulated_tool_delay_ms_after": 100,
            },
        ),
        [[(11, 0, 2), (30, 13, 3)]],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_format_is_recognised_and_read(tmp_path: Path, name: str) -> None:
    text, tasks = CASES[name]
    trace = read(tmp_path, text)
    assert (trace.format, shape(trace)) == (name, tasks)


def test_every_format_has_a_case() -> None:
    assert set(CASES) == {f.name for f in FORMATS}


def test_mooncake_with_sessions_is_aiperf_s(tmp_path: Path) -> None:
    text = lines(
        {"session_id": "s", "input_length": 300, "output_length": 40, "timestamp": 0},
        {"session_id": "s", "text_input": TEN * 100, "output_length": 4, "delay": 2000},
    )
    trace = read(tmp_path, text)
    assert shape(trace) == [[(300, 0, 40), (1000, 340, 4)]]
    assert trace.tasks[0][1].wait_seconds == 2.0
    assert "lengths of 1 calls are a quarter of their characters, not counted" in trace.notes


def test_an_openai_chat_without_usage_is_estimated(tmp_path: Path) -> None:
    said = [
        {"role": "system", "content": TEN},
        {"role": "user", "content": [{"type": "text", "text": TEN}]},
        {"role": "assistant", "content": TEN},
        {"role": "user", "content": TEN},
        {"role": "assistant", "content": TEN},
    ]
    trace = read(tmp_path, lines({"messages": said, "model": "m"}))
    assert trace.format in ("OpenAI-style log", "Mooncake")
    assert shape(trace) == [[(20, 0, 10), (40, 30, 10)]]


def test_waits_are_the_gaps_between_an_answer_and_the_next_call(tmp_path: Path) -> None:
    trace = read(tmp_path, CASES["AIPerf profile export"][0])
    assert [t.wait_seconds for t in trace.tasks[0]] == [None, 3.0]


def test_a_gzipped_trace_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(CASES["Azure CSV"][0].encode()))
    assert read_trace(path).n_turns == 2


def test_a_lost_cache_is_read_again(tmp_path: Path) -> None:
    head = "task_id,turn,input_tokens,cached_prefix_tokens,output_tokens\n"
    trace = read(tmp_path, head + "a,0,1000,0,10\na,1,1100,200,10\n")
    assert trace.tasks[0][1] == Turn(1100, 200, 10)


OWN = "task_id,turn,t_s,input_tokens,cached_prefix_tokens,output_tokens\n"
BAD = {
    "turn 1 is missing": OWN + "a,0,0,10,0,1\na,2,1,20,10,1\n",
    "begins with turn 3": OWN + "a,3,0,10,0,1\n",
    "turn 0 is there twice": OWN + "a,0,0,10,0,1\na,0,1,20,10,1\n",
    "record 2: the clock runs backwards in session 'a', from 9 s to 3 s": OWN
    + "a,0,9,10,0,1\na,1,3,20,10,1\n",
    "input_tokens is '-5': expected a number from 0 up": OWN + "a,0,0,-5,0,1\n",
    "input_tokens is '1.5': expected a whole number": OWN + "a,0,0,1.5,0,1\n",
    "output_tokens is '3000000000': expected fewer than 2^31": OWN + "a,0,0,5,0,3000000000\n",
    "t_s is 'noon': expected a time": OWN + "a,0,noon,5,0,1\n",
    "1 calls, none with a prompt": OWN + "a,0,0,0,0,1\n",
    "holds no records": OWN,
    "its first record has # A page; expected one of": "# A page\n\nwith, more, cells\n",
    "its first record has a, b; expected one of: tokcast CSV": "a,b\n1,2\n",
    "line 2: expected a JSON object a line": '{"input_length": 5, "output_length": 1}\nnonsense\n',
    "continues '7', which is missing": lines(
        {"chat_id": 8, "parent_chat_id": 7, "input_length": 5, "output_length": 1}
    ),
    "turns are missing": lines(
        {
            "input_prompt_length": 5,
            "assistant_response_length": [1, 2, 3],
            "tool_call_output_length": [1],
        }
    ),
    "hash_ids: expected a list": lines({"input_length": 5, "output_length": 1, "hash_ids": 7}),
    "GeneratedTokens is None": "ContextTokens,GeneratedTokens\n5,1\n7\n",
}


@pytest.mark.parametrize("expected", BAD)
def test_what_makes_no_sense_is_one_line(tmp_path: Path, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, BAD[expected])
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_is_no_trace(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Is a directory"):
        read_trace(tmp_path)
