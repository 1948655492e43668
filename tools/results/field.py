# SPDX-License-Identifier: GPL-2.0
"""What people who run NFS over RDMA have reported, and the cases that try it with either module."""

import tomllib

import files

REPORTS = files.DIRECTORY.parent / "field.toml"
PLAN = files.DIRECTORY.parents[1] / "tools" / "test" / "plan"


def reports():
    return tomllib.loads(REPORTS.read_text())["report"]


def summary(results, names):
    """How the cases of a report ended with one module: all in a word, or each that did not pass."""
    found = {f"{row['suite']}: {row['case']}": row for row in results.rows}
    ended = {name: found[name]["result"] if name in found else "not run" for name in names}
    words = set(ended.values())
    if len(words) == 1:
        return words.pop()
    return "; ".join([f"{sum(word == 'passed' for word in ended.values())} of {len(ended)} passed",
                      *(f"{word}: {name}" for name, word in ended.items() if word != "passed")])


def table(this, c):
    """The names of the columns, and a row for each report."""
    rows = []
    for report in reports():
        names = report.get("cases", [])
        rows.append([report["what"],
                     "; ".join(filter(None, [*names, report.get("note", "")])),
                     *(summary(results, names) if names else "" for results in (this, c))])
    return ["Reported", "Cases, and why there are none", "this", "C"], rows


def unknown():
    """The cases that a report names and the plan of "make test" lacks."""
    planned = {": ".join(line.split("\t")[:2]) for line in PLAN.read_text().splitlines()}
    return [name for report in reports() for name in report.get("cases", []) if name not in planned]
