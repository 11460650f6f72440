"""Checks Kvasir behind five frameworks that are built on OpenAI's API, unmodified: LiteLLM, LangChain,
LlamaIndex, Instructor and Pydantic AI.

usage: check.py [CHECK...]        (default: all; one line `ok|FAIL NAME` each, exit 1 on a FAIL)

Environment: KVASIR_BASE_URL and MODEL as in ../python/check.py. What answers is Kvasir with
`kvasir simulate --faults` behind it and classify.pii.action: block. Each framework does the same six
things: a chat, a stream, a tool or a form, an error, a request that is blocked, a stream that is cut.
"""
import asyncio
import os
import sys
import traceback

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # nothing is fetched
os.environ.setdefault("LANGSMITH_TRACING", "false")

import instructor
import litellm
import openai
from instructor.core.exceptions import InstructorRetryException
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel
from pydantic_ai import Agent, ModelHTTPError
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

BASE_URL = os.environ.get("KVASIR_BASE_URL", "http://127.0.0.1:8080/v1")
MODEL = os.environ.get("MODEL", "sim")
HELLO = "Name three colours."
CARD = "My card is 4111 1111 1111 1111, please keep it."
CUT = {"x-sim-fault": "die-after=3"}
litellm.telemetry, litellm.suppress_debug_info = False, True


class City(BaseModel):
    """Where the weather is asked for."""

    city: str
    days: int


def expect(kind, call):
    try:
        got = call()
    except kind as err:
        return err
    raise AssertionError(f"no {kind} was raised, but {got!r} came")


# LiteLLM


def lite(text=HELLO, **more):
    options = {"model": "openai/" + MODEL, "api_base": BASE_URL, "api_key": "none", "max_retries": 0} | more
    return litellm.completion(messages=[{"role": "user", "content": text}], **options)


TOOL = {"type": "function", "function": {"name": "weather", "parameters": City.model_json_schema()}}


def litellm_chat():
    reply = lite()
    assert "simulated answer" in reply.choices[0].message.content and reply.usage.completion_tokens > 0, reply


def litellm_stream():
    parts = list(lite(stream=True))
    whole = litellm.stream_chunk_builder(parts)
    assert whole.choices[0].message.content == lite().choices[0].message.content, whole


def litellm_tools():
    call = lite(tools=[TOOL], tool_choice="required").choices[0].message.tool_calls[0]
    assert call.function.name == "weather" and City.model_validate_json(call.function.arguments), call


def litellm_error():
    err = expect(litellm.NotFoundError, lambda: lite(model="openai/no-such-model"))
    assert "no-such-model" in str(err), err


def litellm_blocked():
    reply = lite(CARD)
    assert reply.choices[0].finish_reason == "content_filter" and "CREDIT_CARD" in reply.choices[0].message.content, reply
    err = expect(litellm.BadRequestError, lambda: lite(CARD, tools=[TOOL]))
    assert "CREDIT_CARD" in str(err), err


def litellm_cut():
    seen = []
    err = expect(openai.APIError, lambda: seen.extend(lite("Go on.", stream=True, extra_headers=CUT)))
    assert seen and "stopped in the middle" in str(err), (seen, err)


# LangChain


def chain(**more):
    return ChatOpenAI(**({"model": MODEL, "base_url": BASE_URL, "api_key": "none", "max_retries": 0} | more))


@tool
def weather(city: str, days: int) -> str:
    """The weather of a city."""
    return f"{city}: rain for {days} days"


def langchain_chat():
    reply = chain().invoke(HELLO)
    assert "simulated answer" in reply.content and reply.usage_metadata["output_tokens"] > 0, reply


def langchain_stream():
    parts = list(chain(stream_usage=True).stream(HELLO))
    assert "".join(p.content for p in parts) == chain().invoke(HELLO).content, parts
    assert len(parts) > 3 and sum((p.usage_metadata or {}).get("output_tokens", 0) for p in parts) > 0, parts


def langchain_tools():
    reply = chain().bind_tools([weather], tool_choice="any").invoke(HELLO)
    assert reply.tool_calls[0]["name"] == "weather" and weather.invoke(reply.tool_calls[0]["args"]), reply
    form = chain().with_structured_output(City).invoke(HELLO)
    assert isinstance(form, City), form


def langchain_error():
    err = expect(openai.NotFoundError, lambda: chain(model="no-such-model").invoke(HELLO))
    assert "no-such-model" in str(err), err


def langchain_blocked():
    reply = chain().invoke(CARD)
    assert reply.response_metadata["finish_reason"] == "content_filter" and "CREDIT_CARD" in reply.content, reply
    # Without a form in the answer None would come back, and nobody would know why.
    err = expect(openai.BadRequestError, lambda: chain().with_structured_output(City).invoke(CARD))
    assert err.code == "content_filter" and "CREDIT_CARD" in str(err), err


def langchain_cut():
    seen = []
    expect(openai.APIError, lambda: seen.extend(chain(default_headers=CUT).stream(HELLO)))
    assert seen, "the tokens before the cut did not arrive"


# LlamaIndex


def llama(**more):
    options = {"model": MODEL, "api_base": BASE_URL, "api_key": "none", "is_chat_model": True, "max_retries": 0}
    return OpenAILike(**(options | {"is_function_calling_model": True, "should_use_structured_outputs": True} | more))


def llamaindex_chat():
    reply = llama().chat([ChatMessage(content=HELLO)])
    assert "simulated answer" in reply.message.content, reply


def llamaindex_stream():
    parts = list(llama().stream_chat([ChatMessage(content=HELLO)]))
    assert len(parts) > 3 and parts[-1].message.content == llama().chat([ChatMessage(content=HELLO)]).message.content, parts


def llamaindex_tools():
    def weather(city: str, days: int) -> str:
        """The weather of a city."""
        return f"{city}: rain for {days} days"

    reply = llama().chat_with_tools([FunctionTool.from_defaults(weather)], user_msg=HELLO, tool_required=True)
    calls = llama().get_tool_calls_from_response(reply)
    assert calls[0].tool_name == "weather" and weather(**calls[0].tool_kwargs), calls
    form = llama().as_structured_llm(City).chat([ChatMessage(content=HELLO)]).raw
    assert isinstance(form, City), form


def llamaindex_error():
    err = expect(openai.NotFoundError, lambda: llama(model="no-such-model").chat([ChatMessage(content=HELLO)]))
    assert "no-such-model" in str(err), err


def llamaindex_blocked():
    reply = llama().chat([ChatMessage(content=CARD)])
    assert "CREDIT_CARD" in reply.message.content and reply.raw.choices[0].finish_reason == "content_filter", reply
    err = expect(openai.BadRequestError, lambda: llama().as_structured_llm(City).chat([ChatMessage(content=CARD)]))
    assert err.code == "content_filter", err


def llamaindex_cut():
    seen = []
    cut = llama(default_headers=CUT)
    expect(openai.APIError, lambda: seen.extend(cut.stream_chat([ChatMessage(content=HELLO)])))
    assert seen, "the tokens before the cut did not arrive"


# Instructor

attempts = []
client = openai.OpenAI(
    base_url=BASE_URL, api_key="none", max_retries=0,
    http_client=openai.DefaultHttpxClient(event_hooks={"request": [lambda r: attempts.append(r.url.path)]}),
)  # fmt: skip


def instruct(text=HELLO, mode=instructor.Mode.TOOLS, kind=City, **more):
    attempts.clear()
    patched = instructor.from_openai(client, mode=mode)
    messages = [{"role": "user", "content": text}]
    return patched.chat.completions.create(**({"model": MODEL, "messages": messages, "response_model": kind, "max_retries": 4} | more))


def instructor_chat():
    for mode in (instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA):
        assert isinstance(instruct(mode=mode), City) and len(attempts) == 1, attempts


def instructor_stream():
    parts = list(instruct(kind=instructor.Partial[City], stream=True))
    assert parts[-1].city and parts[-1].days is not None, parts


def instructor_tools():
    many = list(instruct(kind=list[City]))
    assert many and all(isinstance(c, City) for c in many), many


def instructor_error():
    err = expect(Exception, lambda: instruct(model="no-such-model"))
    assert "no-such-model" in str(err), err


def instructor_blocked():
    # It does not ask again, as it does four times where the answer has no form.
    err = expect(InstructorRetryException, lambda: instruct(CARD))
    assert "CREDIT_CARD" in str(err) and len(attempts) == 1, (err, attempts)


def instructor_cut():
    seen = []
    ask = {"kind": instructor.Partial[City], "stream": True, "max_retries": 1, "extra_headers": CUT}
    err = expect(Exception, lambda: seen.extend(instruct(**ask)))
    assert "stopped in the middle" in str(err), err


# Pydantic AI


def agent(model=MODEL, **more):
    attempts.clear()
    api = openai.AsyncOpenAI(
        base_url=BASE_URL, api_key="none", max_retries=0,
        http_client=openai.DefaultAsyncHttpxClient(event_hooks={"request": [noted]}),
    )  # fmt: skip
    return Agent(OpenAIChatModel(model, provider=OpenAIProvider(openai_client=api)), **more)


async def noted(request):
    attempts.append(request.url.path)


def pydantic_ai_chat():
    assert "simulated answer" in agent().run_sync(HELLO).output


def pydantic_ai_stream():
    async def read():
        async with agent().run_stream(HELLO) as run:
            return [part async for part in run.stream_text(delta=True, debounce_by=None)]

    parts = asyncio.run(read())
    assert len(parts) > 3 and "".join(parts) == agent().run_sync(HELLO).output, parts


def pydantic_ai_tools():
    got = agent(output_type=City).run_sync(HELLO)
    assert isinstance(got.output, City) and len(attempts) == 1, (got, attempts)


def pydantic_ai_error():
    err = expect(ModelHTTPError, lambda: agent("no-such-model").run_sync(HELLO))
    assert err.status_code == 404 and "no-such-model" in str(err), err


def pydantic_ai_blocked():
    err = expect(ModelHTTPError, lambda: agent(output_type=City).run_sync(CARD))
    assert len(attempts) == 1 and "CREDIT_CARD" in str(err), (attempts, err)
    assert "CREDIT_CARD" in agent().run_sync(CARD).output, "where text is asked for, the refusal is the text"


def pydantic_ai_cut():
    seen = []

    async def read():
        async with agent().run_stream(HELLO, model_settings={"extra_headers": CUT}) as run:
            async for part in run.stream_text(delta=True, debounce_by=None):
                seen.append(part)

    err = expect(Exception, lambda: asyncio.run(read()))
    assert seen and "stopped in the middle" in str(err), (seen, err)


FRAMEWORKS = ("litellm", "langchain", "llamaindex", "instructor", "pydantic_ai")
CHECKS = [f"{name}_{what}" for name in FRAMEWORKS for what in ("chat", "stream", "tools", "error", "blocked", "cut")]


def main(names):
    table = {name.replace("_", "-"): globals()[name] for name in CHECKS}
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
