# SPDX-License-Identifier: GPL-2.0
"""Generates the results that README.md shows between marks."""

import collections
import re
import tomllib

import age
import bench
import files
import page

README = files.DIRECTORY.parents[1] / "README.md"
CHART = files.DIRECTORY.parent / "bench.svg"

MARKED = re.compile(r"(<!-- results: (\w+) -->)(.*?)(<!-- end -->)", re.DOTALL)


def bench_results():
    return files.read(files.DIRECTORY / "bench.tsv")


def bench_section():
    results = bench_results()
    columns, rows = bench.table(results)
    out = "\n\n"
    for row in (columns, ["---", *["--:"] * (len(columns) - 1)], *rows):
        out += f"| {' | '.join(row)} |\n"
    return out + "\nCommit {commit}; Linux {kernel}; {date}.\n\n".format_map(results.header)


def layers_section():
    return bench.span(bench_results().rows, "RPC layers")


def probe_section():
    """How many cases of the probe failed, in half a sentence."""
    def failed(name):
        results = [row["result"] for row in files.read(files.DIRECTORY / name).rows]
        return results.count("failed") or "none", results.count("passed") + results.count("failed")
    return "this module failed {} of {} cases, the C module {} of {}".format(
        *failed("probe-ours.tsv"), *failed("probe-c.tsv"))


def conformance_section():
    """The number of requirements in each state, in one sentence: as the last recorded run of all
    tests found them, or as the tables say."""
    path = files.DIRECTORY / "conformance.tsv"
    if path.is_file():
        states = collections.Counter(page.judged(row) for row in files.read(path).rows
                                     if "-" in row["record"])
    else:
        states = collections.Counter(
            requirement["state"]
            for table in sorted((files.DIRECTORY.parent / "conformance").glob("*.toml"))
            for requirement in tomllib.loads(table.read_text())["requirement"])
    text = ("{met} of {all} requirements are met and tested, {partly} are met or tested in part, "
            "{reading} are met but have no test, {n/a} do not apply, and {not met} are not met")
    known = {state: states.pop(state, 0) for state in page.STATES[0]}
    rest = "".join(f"; {count}: {state}" for state, count in states.items())
    return text.format_map(known | {"all": sum(known.values()) + states.total()}) + rest


def trace_events():
    """How many trace events this module and the C module have, of the C module's."""
    rows = [row for row in files.read(files.DIRECTORY / "trace-events.tsv").rows if row["C"]]
    return sum(bool(row["this"]) for row in rows), len(rows)


def events_section():
    return "{} of the C module's {} trace events".format(*trace_events())


def lacking_section():
    present, of_c = trace_events()
    return f"{of_c - present} of the C module's {of_c} trace events"


def mutants_section():
    """How many of the changes that compile a test notices."""
    rows = files.read(files.DIRECTORY / "mutants.tsv").rows
    total = {name: sum(int(row[name]) for row in rows) for name in rows[0]
             if name not in ("file", "commit")}
    same = total["with a reason"]
    return (f"{total['caught']} of {total['changes'] - total['unviable']} changes of the protocol "
            f"code fail a host test, {same} change no result"
            + (f", {total['missed'] - same} go unnoticed" if total["missed"] > same else ""))


def total_section():
    return bench.span(bench_results().rows, "all")


def kernels_section():
    """A row for each kernel and compiler. A cell of tests that did not run says so."""
    results = files.read(files.DIRECTORY / "kernels.tsv")
    suites = [line for line in (README.parent / "selftests" / "suites").read_text().splitlines()
              if not line.startswith("#")]
    out = "\n\n| Linux | Debian suite | Architecture | Compilers | Builds | Loads | Selftests |\n"
    out += "|---|---|---|---|---|---|---|\n"
    for row in results.rows:
        builds, loads, tests = "yes", "not tried", "not run"
        if row["module"] != "built":
            builds, loads, tests = "no", "no", "no"
        elif row["passed"]:
            loads = "yes" if row["passed"] != "0" else "no"
            # "all 23": the number of suites that there were.
            every = row["programs"].removeprefix("all ")
            ran = int(every) if every.isdigit() else row["programs"].count(",") + 1
            part = ", some in part" if " cases)" in row["programs"] else ""
            tests = (f"{ran} of {len(suites)} suites ran{part}: {row['passed']} passed, "
                     f"{row['failed']} failed")
            if row["skipped"] != "0":
                tests += f", {row['skipped']} skipped"
            if row["device"] != "rxe":
                tests += f" (on {row['device']})"
        out += (f"| {row['kernel']} | {row['suite']} | {row['architecture']} | "
                f"rustc {row['rustc']}, {row['compiler']} | {builds} | {loads} | {tests} |\n")
    return out + "\n{date}.\n\n".format_map(results.header)


def dkms_section():
    """The processor time of the installations for which DKMS made a kernel's metadata."""
    results = files.read(files.DIRECTORY / "packages-guest-trixie-backports.tsv")
    seconds = sorted(int(row["note"].split()[0]) for row in results.rows if row["test"] in
                     ("dkms package is installed", "kernel update builds the module"))
    return " to ".join(map(str, dict.fromkeys((seconds[0], seconds[-1])))) + " seconds"


# The figures of README.md that a run of the module gave: name of the file, and what it is about.
MEASURED = {"conformance": "requirements", "probe-ours": "cases of the probe",
            "kernels": "kernels", "bench": "instructions",
            "packages-guest-trixie-backports": "time of DKMS",
            "mutants": "changes of the protocol code"}


def age_section():
    """The commit of each measured figure, and whether the module's source has changed since. Says
    neither how often nor when, so that only the first change after a run alters README.md. None
    where there is no history to tell."""
    if not age.has_history():
        return None
    out = "\n\n| Figures | Commit | Source since then |\n|---|---|---|\n"
    for name, what in MEASURED.items():
        results = files.read(files.DIRECTORY / f"{name}.tsv")
        commits = age.commits(results) or [results.header["commit"]]
        others = f" and {len(commits) - 1} more" if len(commits) > 1 else ""
        out += (f"| {what} | {commits[0]}{others} | "
                f"{'changed' if age.has_changed(results) else 'the same'} |\n")
    return out + "\n"


SECTIONS = {"age": age_section, "bench": bench_section, "conformance": conformance_section,
            "dkms": dkms_section, "events": events_section, "kernels": kernels_section,
            "lacking": lacking_section, "layers": layers_section, "mutants": mutants_section,
            "probe": probe_section, "total": total_section}


def readme():
    """README.md with its marked parts replaced."""
    text = README.read_text()
    if missing := SECTIONS.keys() - {match[2] for match in MARKED.finditer(text)}:
        raise SystemExit(f"error: README.md lacks the marks of: {', '.join(missing)}")
    return MARKED.sub(lambda match: match[1] + (SECTIONS[match[2]]() or match[3]) + match[4], text)
