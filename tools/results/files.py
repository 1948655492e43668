# SPDX-License-Identifier: GPL-2.0
"""Reads and writes the files under Documentation/results.

A file holds the results of one harness on one commit: "# key: value" lines, one line with
the names of the columns, and rows whose fields are separated by tabs. An empty field is "-".
"""

import pathlib
import re

DIRECTORY = pathlib.Path(__file__).resolve().parents[2] / "Documentation" / "results"

# The keys of each header, in this order. Lines with the key "note" may follow.
KEYS = ("commit", "date", "kernel", "device", "module")

HEAD = (
    "# SPDX-License-Identifier: GPL-2.0\n"
    "# Written as a whole by tools/results/record. Never edited by hand.\n"
)

COMMIT = re.compile(r"[0-9a-f]{12,40}(, dirty)?|unknown(, before [0-9a-f]{7,12})?")


class Results:
    """The contents of one file."""

    def __init__(self, name, header, columns, rows, notes=()):
        self.name = name
        self.header = dict(header)
        self.columns = list(columns)
        self.rows = [dict(zip(self.columns, row)) if not isinstance(row, dict) else row
                     for row in rows]
        self.notes = list(notes)

    def text(self):
        lines = [f"# {key}: {self.header.get(key, 'unknown')}" for key in KEYS]
        lines += [f"# note: {note}" for note in self.notes]
        lines.append("\t".join(self.columns))
        for row in self.rows:
            lines.append("\t".join(plain(row.get(column, "")) for column in self.columns))
        return HEAD + "\n".join(lines) + "\n"


def plain(value):
    """A field: one line, no tabs, and never empty."""
    return re.sub(r"\s+", " ", str(value)).strip() or "-"


def read(path):
    path = pathlib.Path(path)
    header, notes, columns, rows = {}, [], None, []
    for line in path.read_text().splitlines():
        if columns is None and line.startswith("#"):
            key, colon, value = line[2:].partition(": ")
            if key == "note":
                notes.append(value)
            elif colon and key in KEYS:
                header[key] = value
        elif columns is None:
            columns = line.split("\t")
        else:
            rows.append([field if field != "-" else "" for field in line.split("\t")])
    return Results(path.stem, header, columns or [], rows, notes)


def read_all():
    return [read(path) for path in sorted(DIRECTORY.glob("*.tsv"))]


def faults(path):
    """Yields each fault in the form of a file."""
    text = pathlib.Path(path).read_text()
    results = read(path)
    for key in KEYS:
        if key not in results.header:
            yield f"no {key}"
    if not COMMIT.fullmatch(results.header.get("commit", "")):
        yield f"\"{results.header.get('commit')}\" is no commit"
    if not results.rows or any(len(row) != len(results.columns) for row in results.rows):
        yield "no rows, or not of as many fields as there are columns"
    if not text.startswith(HEAD) or text != results.text():
        yield "not as tools/results/record writes it"
