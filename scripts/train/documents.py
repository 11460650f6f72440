"""Ordinary documents, as applications read them: what the guard learns innocent documents from.

usage: documents.py DATA PACKAGES OUT

Only the standard library and Go. PACKAGES holds the unpacked wheels of documents.txt; of DATA the prose of pii/ whose
licence allows it. A line of OUT is {text, source, lang}. The sets of attacks bring few documents that hide nothing, and
these are of few kinds; a guard that learns from them alone takes any page of rules and prices for an attack.
"""

import ast
import glob
import gzip
import html
import json
import os
import random
import re
import subprocess
import sys

import rows

MOST = 500  # passages of a source
SHORT, LONG = 80, 2600  # characters of a passage
PACKAGES = {  # what is read of each: documentation in code, descriptions in JSON, messages in the users' languages
    "astropy": "py", "botocore": "json", "django": "po", "googleapiclient": "json", "kubernetes": "py", "networkx": "py",
    "oscar": "po", "sklearn": "py", "stripe": "py", "wagtail": "po"}
FILLED = ["3", "12", "48", "250", "2024-05-01", "9:30", "Anna", "Lin", "M. Weber", "report.pdf", "Sofia", "A-1042", "www.example.org"]  # where a message names something
MODULES = [  # of Go, under the MIT, BSD and Apache licences; their versions stay as they are when go.mod moves on, and so do the rows
    "github.com/NVIDIA/go-nvml@v0.13.4-1", "github.com/cockroachdb/errors@v1.9.1", "github.com/fasthttp/router@v1.5.4", "github.com/fsnotify/fsnotify@v1.10.1",
    "github.com/klauspost/compress@v1.20.3", "github.com/klauspost/cpuid/v2@v2.2.10", "github.com/knadh/koanf/v2@v2.4.1",
    "github.com/milvus-io/milvus-sdk-go/v2@v2.4.2", "github.com/prometheus/client_golang@v1.25.0", "github.com/rs/zerolog@v1.35.1",
    "github.com/spf13/cobra@v1.10.2", "github.com/tidwall/gjson@v1.14.4", "github.com/valyala/fasthttp@v1.78.0", "google.golang.org/grpc@v1.85.0"]
PROSE = {"litbank": "novels", "gum": "prose", "sec-fin5": "contracts", "btc": "posts", "wnut17": "posts", "presidio": "records", "pii-syn": "records"}


def main():
    data, packages, out = sys.argv[1:]
    with open(out, "w", encoding="utf-8") as f:
        for source, lang, parts in sources(data, packages):
            rng = random.Random(rows.number(f"{source} {lang}"))
            made = list(passages(parts, rng))
            for text in rng.sample(made, min(MOST if lang == "en" else MOST // 5, len(made))):
                f.write(json.dumps({"text": text, "source": "document/" + source, "lang": lang}, ensure_ascii=False) + "\n")


def sources(data: str, packages: str):
    """(source, language, parts): parts are lists of texts of one page each, in their order."""
    yield from prose(data)
    for name, kind in PACKAGES.items():
        root = os.path.join(packages, name)
        if kind == "po":
            for lang in sorted({p.split(os.sep)[-3] for p in glob.glob(root + "/**/LC_MESSAGES/*.po", recursive=True)}):
                at = sorted(glob.glob(f"{root}/**/{lang}/LC_MESSAGES/*.po", recursive=True))
                yield name, re.split("[_@-]", lang)[0], [messages(p) for p in at]
        elif kind == "py":
            yield name, "en", [docstrings(p) for p in sorted(glob.glob(root + "/**/*.py", recursive=True))]
        else:
            at = sorted(p for p in glob.glob(root + "/**/*.json*", recursive=True) if "endpoint" not in p)
            chosen = random.Random(7).sample(at, min(400, len(at)))
            yield name, "en", [described(load(p)) for p in chosen if not p.endswith("examples-1.json")]
            if examples := [p for p in at if p.endswith("examples-1.json")]:
                yield name + "-replies", "en", [replies(load(p)) for p in examples]
    yield "modules", "en", list(modules())


def prose(data: str):
    found: dict[str, list[str]] = {}
    for name in ("train", "extra"):
        for r in rows.read_lines(os.path.join(data, "pii", name + ".jsonl")):
            kind = next((k for p, k in PROSE.items() if r["source"].startswith(p)), None)
            if kind and "NC" not in r["lic"]:
                found.setdefault(kind, []).append(r["text"])
    for kind, texts in sorted(found.items()):
        yield kind, "en", [texts]


def docstrings(path: str) -> list[str]:
    try:
        tree = ast.parse(read(path))
    except SyntaxError:
        return []
    found = [n.value.value for n in ast.walk(tree) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant) and isinstance(n.value.value, str)]
    return [re.sub(r"\n[ \t]+", "\n", s).strip() for s in found]


def messages(path: str) -> list[str]:
    text = read(path)
    said = re.findall(r'^msgstr(?:\[\d\])? ((?:".*"\s*)+)', text, flags=re.M)
    plain = ["".join(re.findall(r'"((?:[^"\\]|\\.)*)"', s)).replace('\\"', '"').replace("\\n", "\n").strip() for s in said]
    rng = random.Random(7)
    return [re.sub(r"%(\(\w+\))?[sd]|{\w*}", lambda _: rng.choice(FILLED), s) for s in plain[1:] if len(s) > 12]


def load(path: str):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as f:
        return json.load(f)


def described(value) -> list[str]:
    found = []
    def walk(v):
        if isinstance(v, dict):
            for key, x in v.items():
                if key in ("description", "documentation") and isinstance(x, str) and len(x) > 60:
                    found.append(html.unescape(re.sub(r"<[^>]+>", " ", x)).strip())
                else:
                    walk(x)
        elif isinstance(v, list):
            for x in v:
                walk(x)
    walk(value)
    return found


def replies(value: dict) -> list[str]:
    """What a service answers, as a tool result has it."""
    return [json.dumps(e["output"], indent=i % 3) for examples in value.get("examples", {}).values() for i, e in enumerate(examples) if e.get("output")]


def modules():
    """The pages of some Go modules."""
    said = subprocess.run(["go", "mod", "download", "-json"] + MODULES, capture_output=True, check=True, cwd=os.path.dirname(os.path.abspath(__file__))).stdout
    for folder in sorted(re.findall(r'"Dir": "([^"]+)"', said.decode())):
        for path in sorted(glob.glob(os.path.join(folder, "**", "*.md"), recursive=True)):
            yield read(path).split("\n\n")


def read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def passages(parts: list[list[str]], rng):
    """Passages of SHORT to LONG characters, of neighbouring texts of a page."""
    for texts in parts:
        text, want = "", length(rng)
        for t in texts:
            text = f"{text}\n\n{t}" if len(t) > 200 else f"{text}\n{t}"
            while len(text) > want:
                cut = text.rfind("\n", SHORT, want)
                cut = cut if cut > 0 else text.rfind(" ", SHORT, want)
                cut = cut if cut > 0 else want
                if len(text[:cut].strip()) >= SHORT:
                    yield text[:cut].strip()
                text, want = text[cut:], length(rng)
        if len(text.strip()) >= SHORT:
            yield text.strip()


def length(rng) -> int:
    return int(SHORT * (LONG / SHORT) ** rng.random()) + 20


if __name__ == "__main__":
    main()
