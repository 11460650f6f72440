#!/usr/bin/env python3
"""Pins the wheels of requirements by hash, for pip --require-hashes.

usage: hashes.py FILE [FILE...]     (needs uv, for instance of `pip install uv`)

Each FILE has lines NAME==VERSION, with hashes or without, comments and environment markers. It is
written anew with the hashes of the wheels that CPython 3.11 to 3.14 takes on Linux, x86-64 and arm64;
of a package that has none for these, of its source. Versions stay as they are.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
PLATFORMS = ["x86_64-manylinux_2_40", "aarch64-manylinux_2_40"]


def pins(path):
    """The comments and NAME==VERSION of a file, without hashes."""
    text = re.sub(r"\\\n", "", path.read_text())
    return [re.sub(r"\s*--hash=\S+", "", line).rstrip() for line in text.splitlines()]


def hashes(lines, folder):
    """For each name in small letters the hashes of what pip may take."""
    (folder / "in.txt").write_text("\n".join(lines) + "\n")
    wheels, sources = {}, {}
    for python in PYTHONS:
        for platform in PLATFORMS:
            out = folder / "pylock.toml"
            out.unlink(missing_ok=True)
            run = subprocess.run(
                ["uv", "pip", "compile", "--quiet", "--no-deps", "--no-header", "--format", "pylock.toml", "--python-version", python,
                 "--python-platform", platform, folder / "in.txt", "-o", out], capture_output=True, text=True)
            if run.returncode:
                print(f"{python} {platform}: {run.stderr.strip().splitlines()[-1]}", file=sys.stderr)
                continue
            for package in tomllib.loads(out.read_text())["packages"]:
                name = package["name"]
                for wheel in package.get("wheels", []):
                    wheels.setdefault(name, set()).add(wheel["hashes"]["sha256"])
                if "sdist" in package:
                    sources.setdefault(name, set()).add(package["sdist"]["hashes"]["sha256"])
    return {name: wheels.get(name) or sources[name] for name in wheels | sources}


def main():
    for path in map(pathlib.Path, sys.argv[1:]):
        lines = pins(path)
        with tempfile.TemporaryDirectory() as folder:
            found = hashes(lines, pathlib.Path(folder))
        out = []
        for line in lines:
            out.append(line)
            if "==" in line and not line.startswith("#"):
                name = re.sub(r"[-_.]+", "-", line.split("==")[0]).lower()
                out[-1] += "".join(f" \\\n    --hash=sha256:{h}" for h in sorted(found[name]))
        path.write_text("\n".join(out) + "\n")


main()
