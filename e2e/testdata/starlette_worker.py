"""A worker built as vLLM's and SGLang's API servers are: Starlette on uvicorn. It says what it understood.

usage: starlette_worker.py PORT [httptools|h11]

GET /understood is a list of what the requests said, one object each: path, content_type, and either json or form, a list
of [name, value], with [name, {"file": NAME, "size": N}] for a file.
"""
import sys

import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

understood = []


async def models(request):
    return JSONResponse({"object": "list", "data": [{"id": "m", "object": "model"}, {"id": "m2", "object": "model"}]})


async def health(request):
    return PlainTextResponse("")


async def tell(request):
    return JSONResponse(understood)


def note(request, **read):
    understood.append({"path": request.url.path, "content_type": request.headers.getlist("content-type"), **read})


async def form(request):
    """Dispatches as servers do whose routes take forms and JSON: by the Content-Type that they find first."""
    if request.headers.get("content-type", "").startswith("application/json"):
        note(request, json=await request.json())
        return JSONResponse({"text": "ok"})
    fields = []
    async with request.form() as read:
        for name, value in read.multi_items():
            if not isinstance(value, str):
                value = {"file": value.filename, "size": value.size}
            fields.append([name, value])
    note(request, form=fields)
    return JSONResponse({"text": "ok"})


async def chat(request):
    """Reads a form where the Content-Type says so: some frameworks' routes take both."""
    if not request.headers.get("content-type", "").startswith("application/json"):
        return await form(request)
    body = await request.json()
    note(request, json=body)
    answer = {"role": "assistant", "content": "ok"}
    return JSONResponse({
        "id": "c", "object": "chat.completion", "created": 1, "model": body.get("model"),
        "choices": [{"index": 0, "message": answer, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    })


app = Starlette(routes=[
    Route("/v1/models", models),
    Route("/health", health),
    Route("/understood", tell),
    Route("/v1/audio/transcriptions", form, methods=["POST"]),
    Route("/v1/images/edits", form, methods=["POST"]),
    Route("/v1/chat/completions", chat, methods=["POST"]),
])

uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", http=sys.argv[2] if len(sys.argv) > 2 else "auto")
