"""Checks an OpenAI server with the official OpenAI SDK for Python, unmodified.

usage: check.py [CHECK...]        (default: all; one line `ok|SKIP|FAIL NAME` each, exit 1 on a FAIL)

Environment:
  KVASIR_BASE_URL  default http://127.0.0.1:8080/v1
  MODEL            a model that is served there (default sim)
  API_KEY          default "none"
  WORKER_URL       the workers behind it, comma between: their /metrics say whether a lost client frees them
  FAULTS           1: the workers are `kvasir simulate --faults` and take the header x-sim-fault

check.mjs and sdk_go_test.go are the same table in Node and Go.
"""
import asyncio
import os
import sys
import time
import traceback
import urllib.request

import openai

BASE_URL = os.environ.get("KVASIR_BASE_URL", "http://127.0.0.1:8080/v1")
MODEL = os.environ.get("MODEL", "sim")
WORKERS = [u.rstrip("/") for u in os.environ.get("WORKER_URL", "").split(",") if u]
FAULTS = os.environ.get("FAULTS") == "1"
OPTIONS = {"base_url": BASE_URL, "api_key": os.environ.get("API_KEY", "none"), "timeout": 60}

client = openai.OpenAI(max_retries=0, **OPTIONS)
HELLO = [{"role": "user", "content": "Name three colours."}]
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "enum": ["Oslo", "Rome"]}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
# Temperature 0 and two cities: a model of random weights, too, comes to the end of its JSON.
FORCED = {
    "model": MODEL,
    "messages": HELLO,
    "max_tokens": 64,
    "temperature": 0,
    "tools": [TOOL],
    "tool_choice": {"type": "function", "function": {"name": "get_weather"}},
}
# Many seconds of work for a worker: time enough to leave in the middle.
LONG = {"model": MODEL, "messages": HELLO, "max_tokens": 6000, "extra_body": {"ignore_eos": True}}


class Skip(Exception):
    pass


def need(condition, why):
    if not condition:
        raise Skip(why)


def running():
    """Requests that the workers are working on, by their own count."""
    total = 0.0
    for url in WORKERS:
        with urllib.request.urlopen(url + "/metrics", timeout=5) as reply:
            for line in reply.read().decode().splitlines():
                if line.startswith("vllm:num_requests_running"):
                    total += float(line.rsplit(" ", 1)[1])
    return total


def wait_running(want, seconds):
    deadline = time.monotonic() + seconds
    while (now := running() > 0) != want:
        assert time.monotonic() < deadline, f"after {seconds} s the workers are {'busy' if now else 'idle'}"
        time.sleep(0.01)


def fault(kind):
    need(FAULTS, "needs a worker with faults")
    return {"x-sim-fault": kind}


def models_list():
    ids = [m.id for m in client.models.list()]
    assert MODEL in ids, ids


def models_retrieve():
    assert client.models.retrieve(MODEL).id == MODEL
    expect(openai.NotFoundError, lambda: client.models.retrieve("no-such-model"))


def chat():
    reply = client.chat.completions.create(model=MODEL, messages=HELLO, max_tokens=8)
    assert reply.object == "chat.completion" and reply.model == MODEL, reply
    assert reply.choices[0].message.role == "assistant" and reply.choices[0].message.content, reply
    assert reply.choices[0].finish_reason in ("length", "stop"), reply
    usage = reply.usage
    assert usage.prompt_tokens > 0 and 0 < usage.completion_tokens <= 8, usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens, usage


def chat_stream():
    with client.chat.completions.create(model=MODEL, messages=HELLO, max_tokens=8, stream=True) as stream:
        chunks = list(stream)
    assert len({c.id for c in chunks}) == 1, chunks
    assert all(len(c.choices) == 1 and c.usage is None for c in chunks), "usage was not asked for"
    assert chunks[0].choices[0].delta.role == "assistant", chunks[0]
    assert "".join(c.choices[0].delta.content or "" for c in chunks), chunks
    assert chunks[-1].choices[0].finish_reason in ("length", "stop"), chunks[-1]


def chat_stream_usage():
    with client.chat.completions.create(
        model=MODEL, messages=HELLO, max_tokens=8, stream=True, stream_options={"include_usage": True}
    ) as stream:
        chunks = list(stream)
    last = chunks.pop()
    assert last.choices == [] and last.usage.total_tokens == last.usage.prompt_tokens + last.usage.completion_tokens, last
    assert all(c.usage is None for c in chunks), chunks


def completion():
    reply = client.completions.create(model=MODEL, prompt="Once upon a time", max_tokens=8)
    assert reply.object == "text_completion" and reply.choices[0].text, reply
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens, reply


def completion_stream():
    with client.completions.create(model=MODEL, prompt="Once upon a time", max_tokens=8, stream=True) as stream:
        chunks = list(stream)
    assert "".join(c.choices[0].text for c in chunks), chunks
    assert chunks[-1].choices[0].finish_reason in ("length", "stop"), chunks[-1]
    assert all(c.usage is None for c in chunks), "usage was not asked for"


def tools():
    reply = client.chat.completions.create(**FORCED)
    call = reply.choices[0].message.tool_calls[0]
    assert call.id and call.type == "function" and call.function.name == "get_weather", call
    assert isinstance(call.function.arguments, str) and call.function.arguments, call


def tools_stream():
    name, arguments = "", ""
    with client.chat.completions.create(stream=True, **FORCED) as stream:
        for chunk in stream:
            for call in chunk.choices[0].delta.tool_calls or []:
                name += call.function.name or ""
                arguments += call.function.arguments or ""
    assert name == "get_weather" and arguments, (name, arguments)


def unknown_model():
    for stream in (False, True):
        err = expect(
            openai.NotFoundError,
            lambda stream=stream: client.chat.completions.create(model="no-such-model", messages=HELLO, stream=stream),
        )
        assert (err.code, err.param, err.type) == ("model_not_found", "model", "invalid_request_error"), err.body
        assert "no-such-model" in err.message, err.message


def bad_request():
    err = expect(openai.BadRequestError, lambda: client.chat.completions.create(model=MODEL, messages=[]))
    assert err.type == "invalid_request_error" and err.param == "messages" and err.message, err.body


def worker_bad_request():
    # The request is well formed; the worker itself refuses the value.
    err = expect(
        openai.BadRequestError,
        lambda: client.chat.completions.create(model=MODEL, messages=HELLO, temperature=-1),
    )
    assert err.param == "temperature" and "temperature" in err.message, err.body


def cancel_stream():
    need(WORKERS, "needs WORKER_URL")
    wait_running(False, 45)
    stream = client.chat.completions.create(stream=True, **LONG)
    for _ in range(3):
        next(stream)
    wait_running(True, 8)
    stream.close()
    wait_running(False, 8)


def timeout():
    need(WORKERS, "needs WORKER_URL")
    wait_running(False, 45)
    impatient = client.with_options(timeout=0.5)
    expect(openai.APITimeoutError, lambda: impatient.chat.completions.create(**LONG))
    wait_running(False, 8)


def hang():
    headers = fault("hang")
    wait_running(False, 45)
    impatient = client.with_options(timeout=0.5)
    for stream in (False, True):
        expect(
            openai.APITimeoutError,
            lambda stream=stream: impatient.chat.completions.create(
                model=MODEL, messages=HELLO, max_tokens=8, stream=stream, extra_headers=headers
            ),
        )
        wait_running(False, 8)


def interrupted():
    headers = fault("die-after=3")
    seen = []

    def read():
        with client.chat.completions.create(stream=True, extra_headers=headers, **LONG) as stream:
            seen.extend(stream)

    err = expect(openai.APIError, read)
    assert err.code == "stream_interrupted", err
    assert seen, "the tokens before the cut did not arrive"


def error_503():
    headers = fault("status=503")
    err = expect(
        openai.InternalServerError,
        lambda: client.chat.completions.create(model=MODEL, messages=HELLO, extra_headers=headers),
    )
    assert err.status_code == 503 and err.message, err


def retry_503():
    first = fault("status=503")
    attempts = []

    def hook(request):
        attempts.append(request.headers.get("x-stainless-retry-count"))
        if attempts[-1] == "0":
            request.headers.update(first)

    retrying = openai.OpenAI(
        max_retries=2, http_client=openai.DefaultHttpxClient(event_hooks={"request": [hook]}), **OPTIONS
    )
    reply = retrying.chat.completions.create(model=MODEL, messages=HELLO, max_tokens=8)
    assert reply.choices[0].message.content and attempts == ["0", "1"], attempts


def parallel():
    async def one(api, i):
        messages = [{"role": "user", "content": f"Count to {i}."}]
        if i % 2:
            reply = await api.chat.completions.create(model=MODEL, messages=messages, max_tokens=8)
            return reply.id, reply.choices[0].message.content
        text, chunk = "", None
        async for chunk in await api.chat.completions.create(model=MODEL, messages=messages, max_tokens=8, stream=True):
            text += chunk.choices[0].delta.content or ""
        return chunk.id, text

    async def everyone():
        async with openai.AsyncOpenAI(max_retries=0, **OPTIONS) as api:
            return await asyncio.gather(*(one(api, i) for i in range(32)))

    replies = asyncio.run(everyone())
    assert len({reply_id for reply_id, _ in replies}) == 32 and all(text for _, text in replies), replies


def request_id():
    reply = client.chat.completions.create(
        model=MODEL, messages=HELLO, max_tokens=4, extra_headers={"X-Request-Id": "sdk-check-python"}
    )
    assert reply._request_id == "sdk-check-python", reply._request_id
    first, second = (client.chat.completions.create(model=MODEL, messages=HELLO, max_tokens=4) for _ in range(2))
    assert first._request_id and first._request_id != second._request_id, first._request_id
    err = expect(openai.NotFoundError, lambda: client.chat.completions.create(model="no-such-model", messages=HELLO))
    assert err.request_id, "an error has no request id"


def cached():
    """The same question again, whole, streamed and by each route that the cache knows."""
    need(FAULTS, "needs a simulated worker: others may come to no end")
    hello = [{"role": "user", "content": "Name three colours that are no colours."}]

    def until_hit(ask):
        deadline = time.monotonic() + 20
        while (reply := ask()).headers.get("x-vsr-cache-hit") != "true":
            need(reply.headers.get("x-kvasir-cache") is not None, "no cache here")
            assert time.monotonic() < deadline, reply.headers
            time.sleep(0.02)
        return reply.parse()

    raw = client.with_raw_response
    whole = until_hit(lambda: raw.chat.completions.create(model=MODEL, messages=hello))
    assert whole.choices[0].message.role == "assistant" and whole.choices[0].finish_reason == "stop", whole
    with client.chat.completions.create(
        model=MODEL, messages=hello, stream=True, stream_options={"include_usage": True}
    ) as stream:
        assert stream.response.headers["x-vsr-cache-hit"] == "true", stream.response.headers
        chunks = list(stream)
    assert chunks[0].choices[0].delta.role == "assistant", chunks[0]
    assert chunks.pop().usage == whole.usage and chunks[-1].choices[0].finish_reason == "stop", chunks[-1]
    assert "".join(c.choices[0].delta.content or "" for c in chunks) == whole.choices[0].message.content, chunks
    story = {"model": MODEL, "prompt": "Once upon a time in the cache", "max_tokens": 4000}
    text = until_hit(lambda: raw.completions.create(**story))
    with client.completions.create(**story, stream=True) as stream:
        assert "".join(c.choices[0].text for c in stream) == text.choices[0].text


def expect(kind, call):
    try:
        call()
    except kind as err:
        return err
    raise AssertionError(f"no {kind.__name__} was raised")


CHECKS = [
    models_list, models_retrieve, chat, chat_stream, chat_stream_usage, completion, completion_stream,
    tools, tools_stream, unknown_model, bad_request, worker_bad_request, request_id, parallel, cached,
    cancel_stream, timeout, hang, interrupted, error_503, retry_503,
]  # fmt: skip


def main(names):
    table = {f.__name__.replace("_", "-"): f for f in CHECKS}
    failed = 0
    for name in names or table:
        try:
            table[name]()
            print(f"ok   {name}", flush=True)
        except Skip as skip:
            print(f"SKIP {name}: {skip}", flush=True)
        except Exception as err:
            failed += 1
            print(f"FAIL {name}: {type(err).__name__}: {str(err)[:500]}", flush=True)
            traceback.print_exc()
    return 1 if failed else 0


sys.exit(main(sys.argv[1:]))
