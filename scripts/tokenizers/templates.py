"""Renders chat templates as transformers does: the other side of kvroute/template's comparison.

    templates.py         answers on standard output what stands on standard input, a line each:
        {"template": SOURCE}                  the next lines are for this template; no answer
        {"vars": {...}, "continue": BOOL}     {"text": RENDERED} or {"error": WHY}

The environment is that of transformers.utils.chat_template_utils (5.19), which needs no more of
transformers.
"""
import datetime
import json
import sys

import jinja2
import jinja2.ext
import jinja2.sandbox

NOW = datetime.datetime(2026, 3, 5, 7, 8, 9)  # strftime_now's clock here


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_caller"), [], [], body).set_lineno(line)

    def _caller(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    e = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    e.filters["tojson"] = tojson
    e.globals["raise_exception"] = raise_exception
    e.globals["strftime_now"] = lambda f: NOW.strftime(f)
    return e


def main():
    env = environment()
    template = None
    for line in sys.stdin:
        asked = json.loads(line)
        if "template" in asked:
            try:
                template = env.from_string(asked["template"])
            except Exception as e:
                template = e
            continue
        try:
            if isinstance(template, Exception):
                raise template
            answer = {"text": template.render(**asked["vars"])}
        except Exception as e:
            answer = {"error": f"{type(e).__name__}: {e}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
