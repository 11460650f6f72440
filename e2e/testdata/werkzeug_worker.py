"""A worker built on Werkzeug, as servers in Flask are. It says what it understood.

usage: werkzeug_worker.py PORT

GET /understood is a list of what the requests said, as starlette_worker.py has it.
"""
import json
import logging
import sys

from werkzeug.serving import run_simple
from werkzeug.wrappers import Request, Response

understood = []


def answer(value):
    return Response(json.dumps(value), mimetype="application/json")


@Request.application
def app(request):
    if request.path == "/v1/models":
        return answer({"object": "list", "data": [{"id": "m", "object": "model"}, {"id": "m2", "object": "model"}]})
    if request.path == "/understood":
        return answer(understood)
    if request.method != "POST":
        return Response("")
    read = {"path": request.path, "content_type": request.headers.getlist("content-type")}
    if request.mimetype == "application/json":
        understood.append({**read, "json": request.get_json()})
        message = {"role": "assistant", "content": "ok"}
        return answer({
            "id": "c", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        })
    fields = [list(field) for field in request.form.items(multi=True)]
    fields += [[name, {"file": f.filename, "size": len(f.read())}] for name, f in request.files.items(multi=True)]
    understood.append({**read, "form": fields})
    return answer({"text": "ok"})


logging.getLogger("werkzeug").setLevel(logging.ERROR)
run_simple("127.0.0.1", int(sys.argv[1]), app, threaded=True)
