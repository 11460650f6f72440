"""Checks the routes beside chats with the official SDKs of OpenAI and Anthropic for Python, unmodified.

usage: check.py [CHECK...]        (default: all; one line `ok|FAIL NAME` each, exit 1 on a FAIL)

Environment: KVASIR_BASE_URL and MODEL as in ../python/check.py. What answers is Kvasir with simulated
workers: the texts are theirs. check.mjs has the same for Node.
"""
import os
import sys
import traceback
from typing import Literal

import anthropic
import openai
from pydantic import BaseModel, Field

BASE_URL = os.environ.get("KVASIR_BASE_URL", "http://127.0.0.1:8080/v1")
MODEL = os.environ.get("MODEL", "sim")

client = openai.OpenAI(base_url=BASE_URL, api_key="none", max_retries=0, timeout=60)
claude = anthropic.Anthropic(base_url=BASE_URL.removesuffix("/v1"), api_key="none", max_retries=0, timeout=60)
HELLO = [{"role": "user", "content": "Name three colours."}]
CITY = {"type": "object", "properties": {"city": {"type": "string", "enum": ["Oslo", "Rome"]}}, "required": ["city"]}


class Step(BaseModel):
    explanation: str = Field(min_length=3)
    kind: Literal["add", "multiply"]
    done: bool
    next: "Step | None"


class Answer(BaseModel):
    steps: list[Step]
    result: float = Field(gt=2.5)
    note: str | None


def responses():
    reply = client.responses.create(model=MODEL, input="Hello there", instructions="Be brief.")
    assert reply.status == "completed" and "simulated answer" in reply.output_text, reply
    usage = reply.usage
    assert usage.input_tokens > 0 and usage.total_tokens == usage.input_tokens + usage.output_tokens, usage
    short = client.responses.create(model=MODEL, input="Hello there", max_output_tokens=3)
    assert short.status == "incomplete" and short.incomplete_details.reason == "max_output_tokens", short


def responses_stream():
    with client.responses.stream(model=MODEL, input="Stream this") as stream:
        events = [e.type for e in stream]
        final = stream.get_final_response()
    assert events[0] == "response.created" and events[-1] == "response.completed", events
    for kind in ("response.output_item.added", "response.output_text.delta", "response.output_text.done"):
        assert kind in events, events
    assert "simulated answer" in final.output_text, final


def responses_go_on():
    # store=True: what the cache answers, no worker remembers.
    first = client.responses.create(model=MODEL, input="Remember seven lanterns", store=True)
    second = client.responses.create(model=MODEL, input="How many?", previous_response_id=first.id)
    assert second.previous_response_id == first.id and second.usage.input_tokens > first.usage.total_tokens, second
    err = expect(
        openai.NotFoundError,
        lambda: client.responses.create(model=MODEL, input="x", previous_response_id="resp_none"),
    )
    assert "resp_none" in err.message, err


def responses_tools():
    tool = {"type": "function", "name": "get_weather", "parameters": CITY, "strict": True}
    conversation = [{"role": "user", "content": "Weather?"}]
    reply = client.responses.create(model=MODEL, input=conversation, tools=[tool], tool_choice="required")
    call = reply.output[0]
    assert call.type == "function_call" and call.name == "get_weather" and call.arguments == '{"city": "Oslo"}', reply
    conversation += [call.to_dict(), {"type": "function_call_output", "call_id": call.call_id, "output": "Rain"}]
    assert "simulated" in client.responses.create(model=MODEL, input=conversation, tools=[tool]).output_text


def responses_parse():
    parsed = client.responses.parse(model=MODEL, input="Solve it", text_format=Answer).output_parsed
    assert parsed.result > 2.5 and parsed.steps[0].kind == "add", parsed


def chat_parse():
    parsed = client.chat.completions.parse(model=MODEL, messages=HELLO, response_format=Answer).choices[0].message.parsed
    assert parsed.result > 2.5 and parsed.steps[0].kind == "add", parsed
    with client.chat.completions.stream(model=MODEL, messages=HELLO, response_format=Answer) as stream:
        for _ in stream:
            pass
        assert stream.get_final_completion().choices[0].message.parsed == parsed
    impossible = {"type": "string", "minLength": 9, "maxLength": 3}
    err = expect(
        openai.BadRequestError,
        lambda: client.chat.completions.create(
            model=MODEL,
            messages=HELLO,
            response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": impossible}},
        ),
    )
    assert "cannot make JSON for this schema" in err.message, err


def embeddings():
    texts = ["How do I reset my password?", "Reset my password: how?", "Copper lantern by the river"]
    # The SDK asks for base64 unless a format is named.
    one, two, other = (d.embedding for d in client.embeddings.create(model=MODEL, input=texts).data)
    named = client.embeddings.create(model=MODEL, input=texts, encoding_format="float")
    assert max(abs(a - b) for a, b in zip(one, named.data[0].embedding)) < 1e-6 and named.usage.prompt_tokens > 0
    dot = lambda a, b: sum(x * y for x, y in zip(a, b))
    assert abs(dot(one, one) - 1) < 1e-4 and dot(one, two) > dot(one, other), (dot(one, two), dot(one, other))
    assert len(client.embeddings.create(model=MODEL, input="x", dimensions=64).data[0].embedding) == 64


def absent_route():
    err = expect(openai.NotFoundError, lambda: client.images.generate(model=MODEL, prompt="x"))
    assert "/v1/images/generations" in err.message and "/v1/responses" in err.message, err


def messages():
    reply = claude.messages.create(model=MODEL, max_tokens=400, system="Be brief.", messages=HELLO)
    assert reply.stop_reason == "end_turn" and "simulated answer" in reply.content[0].text, reply
    count = claude.messages.count_tokens(model=MODEL, system="Be brief.", messages=HELLO)
    assert count.input_tokens == reply.usage.input_tokens > 0, (count, reply.usage)
    chat = client.chat.completions.create(model=MODEL, messages=[{"role": "system", "content": "Be brief."}, *HELLO])
    assert chat.choices[0].message.content == reply.content[0].text, "a chat of the same words is answered otherwise"


def messages_stream():
    with claude.messages.stream(model=MODEL, max_tokens=20, messages=HELLO) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text and final.content[0].text == text and final.stop_reason == "max_tokens", final
    assert final.usage.output_tokens == 20, final.usage


def messages_tools():
    tools = [{"name": "get_weather", "input_schema": CITY}]
    asked = [{"role": "user", "content": "Weather?"}]
    ask = {"model": MODEL, "max_tokens": 99, "tools": tools}
    reply = claude.messages.create(messages=asked, tool_choice={"type": "any"}, **ask)
    call = reply.content[0]
    assert reply.stop_reason == "tool_use" and call.name == "get_weather" and call.input == {"city": "Oslo"}, reply
    with claude.messages.stream(messages=asked, tool_choice={"type": "any"}, **ask) as stream:
        streamed = stream.get_final_message()
    assert streamed.content[0].input == {"city": "Oslo"} and streamed.stop_reason == "tool_use", streamed
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "Rain"}
    turns = [*asked, {"role": "assistant", "content": reply.content}, {"role": "user", "content": [result]}]
    assert "simulated" in claude.messages.create(messages=turns, **ask).content[0].text


def messages_errors():
    err = expect(
        anthropic.NotFoundError, lambda: claude.messages.create(model="no-such-model", max_tokens=9, messages=HELLO)
    )
    assert "no-such-model" in str(err), err
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    err = expect(
        anthropic.BadRequestError,
        lambda: claude.messages.create(model=MODEL, max_tokens=9, messages=[{"role": "user", "content": [image]}]),
    )
    assert "multimodal" in str(err), err


def expect(kind, call):
    try:
        call()
    except kind as err:
        return err
    raise AssertionError(f"no {kind.__name__} was raised")


CHECKS = [
    responses, responses_stream, responses_go_on, responses_tools, responses_parse, chat_parse, embeddings, absent_route,
    messages, messages_stream, messages_tools, messages_errors,
]  # fmt: skip


def main(names):
    table = {f.__name__.replace("_", "-"): f for f in CHECKS}
    failed = 0
    for name in names or table:
        try:
            table[name]()
            print(f"ok   {name}", flush=True)
        except Exception as err:
            failed += 1
            print(f"FAIL {name}: {type(err).__name__}: {str(err)[:500]}", flush=True)
            traceback.print_exc()
    return 1 if failed else 0


sys.exit(main(sys.argv[1:]))
