"""Which rows that are kept apart the shipped weights have learned, hidden in documents: learned.txt.

usage: learned.py DATA DOCUMENTS > learned.txt        DOCUMENTS: what documents.py wrote

The shipped guard was trained when sources.to_learn hid attacks of all rows in documents, also those that `make eval`
measures. rows.py leaves them out of what is measured, by this list, until there are weights that were trained without them;
then the list is to be emptied. A line is the hash of a text, and its source.
"""

import sys

import rows
import sources


def learned(data: str, documents: str) -> dict[str, str]:
    """The source of each such row, by its hash."""
    judged = sources.with_folds(sources.read(data, ambiguous=True))
    hidden = {r["hidden"] for r in sources.to_learn(documents, judged, as_shipped=True) if "hidden" in r}
    return {rows.hashed(r["text"]): r["source"] for r in rows.kept_apart(data) if r["task"] == "guard" and sources.MASK.sub("DONE", r["text"]) in hidden}


if __name__ == "__main__":
    for name, source in sorted(learned(*sys.argv[1:]).items()):
        print(name, source)
