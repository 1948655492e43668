# SPDX-License-Identifier: GPL-2.0
"""The results as a document: every file of Documentation/results as a section."""

import collections
import re

import age
import bench
import field
import files

INTRODUCTION = """.. SPDX-License-Identifier: GPL-2.0

============
Test results
============

Generated from ``Documentation/results`` by ``tools/results/render``. Each section is one file,
which a harness has written when it was started with ``--record``. A result holds for the
commit that its section names; "dirty" means that the tree had changes that were not committed.
Where the commit is unknown, the rows were converted from tables that these documents had before:
the run was made on an earlier commit than the one named, and its commit was not recorded.
"Changes" counts the commits since then, up to the tree of this page, that have changed the module's
source.
``this`` is this module, ``C`` the kernel's C module.
"""

# Name of the file: title, and the command that writes the file.
SECTIONS = {
    "debug-rxe": ("Debug kernel over rxe", "``make test-debug`` (:doc:`debugging`)."),
    "debug-siw": ("Debug kernel over siw", "``make test-debug`` (:doc:`debugging`)."),
    "hundred-rxe": ("A hundred times, stock kernel over rxe",
                    "``make test-hundred`` (:doc:`debugging`). A case passes if all of its "
                    "hundred repetitions do."),
    "hundred-debug-rxe": ("A hundred times, debug kernel over rxe",
                          "``KERNEL=debug tools/test/hundred``."),
    "hundred-debug-siw": ("A hundred times, debug kernel over siw",
                          "``KERNEL=debug tools/test/hundred --rdma siw``."),
    "kernels": ("Kernels and compilers", "``make test-kernels`` (:doc:`contributing`). A Debian "
                "suite without a series stands for its newest kernel; behind the colon is a series, "
                "a flavour, or the source from which the kernel was built."),
    "packages": ("Packages in a chroot", "``make test-package`` (:doc:`operating`): the package "
                 "for DKMS, and the one for one kernel, with a stock kernel's packages. The "
                 "seconds are of a busy machine."),
    "packages-trixie-backports": ("Packages in a chroot, Debian 13 with a kernel of its backports",
                                  "``make test-package SUITE=trixie-backports``."),
    "packages-guest-trixie-backports": (
        "The package for DKMS on a server with Debian 13",
        "``make test-package-guest`` (:doc:`operating`): a disk with Debian's packages and kernels of its "
        "backports. Processor time is that of the whole installation. The last column is the commit on "
        "which the part ran."),
    "conformance": ("Requirements and bug classes", "``make test`` (:doc:`conformance`, "
                    ":doc:`bug-classes`). A row counts under its state if all tests that it names "
                    "passed in this run; the tests of the others failed, or did not run."),
    "trace-events": ("Trace events", "``tools/results/events --record`` (:doc:`operating`), from the "
                     "headers. The table has the events that one of the modules lacks."),
    "test": ("Parts of make test", "``tools/test/run --record`` (:doc:`contributing`). Two parts run at a "
             "time. The seconds are of an emulated processor, and of a machine with other work."),
    "long": ("What make test leaves out", "``make test-long`` (:doc:`contributing`). A part without a row "
             "did not run on this commit."),
    "mutants": ("Changes of the code", "``make mutants`` (:doc:`contributing`). Caught changes made a "
                "host test fail, or kept it from ending; unviable ones do not compile. Missed ones have "
                "a reason in ``tools/mutants/survivors``, unless the columns differ."),
    "mutants-listed": ("Listed changes of the code", "``tools/mutants/listed`` (:doc:`contributing`). "
                       "The commit is that on which the change was made. The remark is the law "
                       "that it breaks in the simulation, or why no test sees it."),
    "packages-guest-forky": (
        "The package for DKMS on a server with Debian forky",
        "``make test-package-guest SUITE=forky`` (:doc:`operating`)."),
    "sim": ("Simulated runs", "``tools/test/sim --record`` (:doc:`contributing`). No seed failed. The "
            "seconds are of one processor."),
    "coverage": ("What simulated runs reach", "``make coverage`` (:doc:`contributing`). The functions that "
                 "are not reached have a reason in ``tools/host/sim/unreached``. A line counts as reached if "
                 "a part of it is; a ``match`` has regions and no branches."),
    "suites": ("Other runs of the selftests", "``tools/test/run`` (:doc:`contributing`)."),
    "probe-ours": ("Probe, this module", "``tools/probe/run`` (:doc:`probe`). Cases that "
                   "passed are in the file."),
    "probe-c": ("Probe, C module", "``tools/probe/run --module c`` (:doc:`probe`). Cases that "
                "passed are in the file."),
    "field-ours": ("Suites of the reports from the field, this module", "``tools/test/field "
                   "--record``. Cases that passed are in the file."),
    "field-c": ("Suites of the reports from the field, C module", "``tools/test/field --record "
                "--module c``. Cases that passed are in the file."),
    "fuzz-ours": ("Mutated messages", "``tools/probe/run --fuzz`` (:doc:`probe`)."),
    "flood": ("Hostile clients beside an honest one", "``tools/probe/flood`` (:doc:`probe`). "
              "Latencies of ``stat()`` in ms: mean and longest before the hostile clients connect, "
              "then mean and longest while they run, on a machine with other work. Counters are "
              "those of the server, \"-\" if the module has no such counter."),
    "interop": ("Matrix with the C module", "``tools/interop/run`` (:doc:`interoperation`)."),
    "nfstest": ("nfstest", "``tools/interop/nfstest`` (:doc:`interoperation`). The numbers "
                "count nfstest's assertions."),
    "invalidation": ("Invalidation with the C module",
                     "``tools/interop/invalidation`` (:doc:`interoperation`)."),
    "recalls": ("Recalls with the C module",
                "``tools/interop/recalls`` (:doc:`interoperation`)."),
    "pulled": ("Pulled Replies and the C module",
               "``tools/interop/pulled`` (:doc:`interoperation`)."),
    "slow_link": ("A link of 2 Mbit/s", "``tools/interop/slow_link`` (:doc:`interoperation`)."),
    "recalls-loaded": ("Recalls under load", "``LOADED=1 tools/test/run callbacks`` "
                       "(:doc:`interoperation`)."),
    "killed": ("Killed tasks", "``selftests/killed.sh`` (:doc:`pulled-replies`)."),
    "bench": ("Cost of operations", "``make bench``: instructions of client and server per operation. "
              "The RPC layers are rpcrdma, sunrpc, ib_core, rdma_cm and ib_cm. The file has more modules, "
              "and the RPCs of each operation. READ and WRITE are direct unless the row says buffered."),
    "bench-floor": ("Cost of raw verbs", "``tools/bench/floor``: instructions of one exchange of Call and "
                    "Reply between two queue pairs in one guest, with so many bytes, by verbs alone: "
                    "one registration, one Send each way, and RDMA Write or RDMA Read between."),
    "bench-events": ("Events of operations", "``make bench``: what happened in the same runs, per "
                     "operation, with this module / with the C module. The figures are those of "
                     "the whole guest: client, server, device, network and file system. A doorbell "
                     "is a call of the device's function that posts Sends or Receives. "
                     "Invalidations are local, or by a Send."),
    "bench-steps": ("Steps of operations", "``make bench``: the instructions of the RPC layers by step of "
                    "``tools/bench/steps``, with this module / with the C module. "
                    ":doc:`cost` says why they differ."),
    "bench-functions": ("Functions of operations", "``make bench``: the steps above by file of this "
                        "module's source, and by function of all else, for operations of one RPC and an "
                        "hour without any. The file has all operations. *other* is the sum of what "
                        "takes less than 0.2 percent of the RPC layers of every operation. :doc:`cost` "
                        "says what the files do."),
    "bench-replies": ("Cost of pulled Replies", "``tools/bench/replies`` "
                      "(:doc:`pulled-replies`). Per operation of a program."),
    "bench-thresholds": ("Message sizes", "``tools/bench/thresholds`` (:doc:`operating`). "
                         "Settings are in KiB; all other lengths are in bytes unless the "
                         "column says MiB."),
    "bench-backchannel": ("Cost of a backchannel without Calls", "``tools/bench/backchannel`` "
                          "(:doc:`operating`). Instructions per operation of 4 KiB."),
    "bench-memory": ("Memory of connections", "``tools/bench/memory``. KiB of one connection at each "
                     "end: slabs, vmalloc() and per-CPU memory, what the device allocates included."),
    "bench-growth": ("Growth of the cost of a READ", "``tools/bench/growth``: instructions of a direct "
                     "READ of 4 KiB with 1, 8 and 64 at once, with 8 connections, beside 9 and 99 idle "
                     "mounts, and with 4 processors. Modules as in the cost of operations. Contended "
                     "are the locks that another processor or task had taken."),
    "restart": ("Writers after a restart of their server", "``tools/bench/restart``: the server is "
                "away for so many seconds. Times in ms from the return of the listener until the "
                "writers, one for each mount, go on: the least, the median and the longest. "
                "Attempts are those of a mount to connect."),
    "bench-invalidation": ("What Remote Invalidation saves", "``tools/bench/invalidation``. "
                           "Instructions per operation of 4 KiB."),
}


def escaped(text):
    return re.sub(r"([\\*`|_])", r"\\\1", text)


def heading(text, underline):
    return f"\n{text}\n{underline * len(text)}\n\n"


def table(columns, rows, literal=()):
    """A list table; cells of the columns in "literal" are literal text."""
    out = ".. list-table::\n   :header-rows: 1\n   :widths: auto\n\n"
    for row in [columns, *rows]:
        for i, cell in enumerate(row):
            if row is not columns and columns[i] in literal and "`" not in cell:
                cell = f"``{cell}``" if cell else ""
            else:
                cell = escaped(cell)
            out += ("   * - " if i == 0 else "     - ") + cell + "\n"
    return re.sub(r" +\n", "\n", out) + "\n"


def provenance(results):
    out = "".join(f":{key.capitalize()}: {escaped(results.header[key])}\n"
                  for key in files.KEYS)
    if age.has_history() and (count := age.changes(results)) is not None:
        out += f":Changes: {count} since then to {' and '.join(age.SOURCE)}\n"
    out += "\n"
    for note in results.notes:
        out += f"{escaped(note)}\n\n"
    return out


# A view of a file: the names of the columns, the rows, and lines below the table.


def plain_view(results, rows=None):
    rows = results.rows if rows is None else rows
    return results.columns, [[row[column] for column in results.columns] for row in rows], []


def interop_view(results):
    """A row for each pair and version, a column for each test."""
    keys, whats, reasons, cells = [], [], [], {}
    for row in results.rows:
        key = (row["client"], row["server"], row["nfs"], row["date"])
        if key not in keys:
            keys.append(key)
        if row["what"] not in whats:
            whats.append(row["what"])
        cell = {"passed": "ok", "xfailed": "fails", "skipped": "skipped"}.get(
            row["result"], row["result"])
        if row["reason"]:
            if row["reason"] not in reasons:
                reasons.append(row["reason"])
            cell += f" [{reasons.index(row['reason']) + 1}]"
        cells[key, row["what"]] = cell
    return (["client", "server", "NFS", "date", *whats],
            [[*key, *(cells.get((key, what), "") for what in whats)] for key in keys],
            [f"[{i}] {reason}" for i, reason in enumerate(reasons, 1)])


def probe_view(results):
    """The cases that did not pass."""
    count = collections.Counter(passed=0, failed=0, skipped=0)
    count.update(row["result"] for row in results.rows)
    columns, rows, _ = plain_view(results, [row for row in results.rows
                                            if row["result"] != "passed"])
    return columns, rows, [", ".join(f"{number} {verdict}" for verdict, number in count.items())]


def events_view(results):
    """The events that one of the modules lacks."""
    columns, rows, _ = plain_view(results, [row for row in results.rows
                                            if not (row["this"] and row["C"])])
    count = {name: sum(bool(row[name]) for row in results.rows) for name in ("this", "C")}
    return columns, rows, [", ".join(f"{name}: {number} events" for name, number in count.items())]


# The states of requirements and of bug classes, in the order of tools/conformance.
STATES = (("met", "partly", "reading", "not met", "n/a"),
          ("test", "elsewhere", "type", "none", "n/a"))


def judged(row):
    """The state of a record, if its tests passed or it needs none."""
    return row["result"] if row["result"] in ("failed", "not run") else row["state"]


def conformance_view(results, bugs=None):
    """The number of records in each state, by document or class. bugs selects one table."""
    counts, ids = {}, {"failed": [], "not run": []}
    for row in results.rows:
        document, dash, _ = row["record"].partition("-")
        name = document if dash else f"class {document[0]}"
        if bugs is None or bugs != bool(dash):
            counts.setdefault(name, collections.Counter())[judged(row)] += 1
            ids.get(judged(row), []).append(row["record"])
    states = list(dict.fromkeys(sum((STATES if bugs is None else (STATES[bugs],)), ())))
    states += [state for state, names in ids.items() if names]
    rows = [[name, *(str(of_name[state]) for state in states), str(of_name.total())]
            for name, of_name in counts.items()]
    total = sum(counts.values(), collections.Counter())
    rows.append(["all", *(str(total[state]) for state in states), str(total.total())])
    return (["", *states, "all"], rows,
            [f"{state}: {', '.join(names)}" for state, names in ids.items() if names])


def conformance_table(bugs):
    """The counts of the last recorded run, for the page of the requirements or bug classes."""
    path = files.DIRECTORY / "conformance.tsv"
    if not path.is_file():
        return "No run has been recorded.\n"
    results = files.read(path)
    columns, rows, below = conformance_view(results, bugs)
    return (provenance(results) + table(columns, rows) +
            "".join(f"{escaped(line)}\n\n" for line in below))


def requirement_key(name):
    return [(0, int(part), "") if part.isdigit() else (1, 0, part)
            for part in re.split(r"(\d+)", name)]


def by_requirement(probes):
    """The verdict on each requirement, from the cases that name it, in each of the files."""
    verdicts = {}
    for i, results in enumerate(probes):
        for row in results.rows:
            if row["result"] == "skipped":
                continue
            for requirement in row["requirements"].split():
                verdicts.setdefault(requirement, [set() for _ in probes])[i].add(row["result"])
    rows = []
    for name in sorted(verdicts, key=requirement_key):
        rows.append([name, *("not tried" if not seen else
                             "fail" if "failed" in seen else "pass"
                             for seen in verdicts[name])])
    return rows


def requirements_section(probes):
    out = heading("Probe, by requirement", "=")
    out += ("*pass*: all cases that name the requirement passed. *fail*: at least one failed. "
            "*not tried*: none ran. A requirement may ask more than a probe can see: "
            ":doc:`conformance` names what else shows it.\n\n")
    return out + table(["Requirement", *(results.header["module"] for results in probes)],
                       by_requirement(probes))


def reports_section(this, c):
    """What was reported from the field, and what both modules do."""
    out = heading("Reports from the field", "=")
    out += ("What people who run NFS over RDMA have reported on public lists and trackers up to "
            "September 2026 (``Documentation/field.toml``), and how the cases that try it ended.\n\n")
    return out + table(*field.table(this, c))


def bench_view(results):
    return (*bench.table(results), [])


def pairs_of_bench_view(results):
    return (*bench.pairs_table(results), [])


def functions_view(results):
    return (*bench.functions_table(results), [])


def mutants_view(results):
    """A row for each file, and the sums."""
    columns, rows, _ = plain_view(results)
    sums = [str(sum(int(row[i]) for row in rows)) for i in range(1, columns.index("commit"))]
    return columns, [*rows, ["all", *sums, ""]], []


def listed_remarks():
    """The remark of each listed change: the law that it breaks, or why no test sees it."""
    lines = (files.DIRECTORY.parents[1] / "tools" / "mutants" / "changes").read_text().splitlines()
    return {fields[0]: fields[5] for fields in (line.split("\t") for line in lines)
            if len(fields) > 5}


def coverage_view(results):
    """A row for each file, and the sums."""
    columns, rows, _ = plain_view(results)
    sums = [str(sum(int(row[i]) for row in rows)) for i in range(1, len(columns) - 1)]
    return columns, [*rows, ["all", *sums, ""]], []


def listed_view(results):
    """The results by change with the remarks, and how many were caught."""
    columns, rows, _ = plain_view(results)
    caught = sum(row["result"].startswith("caught") for row in results.rows)
    remarks = listed_remarks()
    return ([*columns, "remark"], [[*row, remarks.get(row[0], "")] for row in rows],
            [f"{caught} of {len(rows)} caught"])


def view(results):
    if results.name.startswith(("probe-", "field-")):
        return probe_view(results)
    return {"interop": interop_view, "bench": bench_view, "bench-events": pairs_of_bench_view,
            "bench-steps": pairs_of_bench_view, "bench-functions": functions_view,
            "trace-events": events_view,
            "mutants": mutants_view, "mutants-listed": listed_view,
            "coverage": coverage_view,
            "conformance": conformance_view}.get(results.name, plain_view)(results)


def body(results):
    columns, rows, below = view(results)
    out = table(columns, rows, literal=("reason", "said")) if rows else ""
    return out + "".join(f"{escaped(line)}\n\n" for line in below)


def page():
    found = {results.name: results for results in files.read_all()}
    names = [name for name in SECTIONS if name in found]
    names += [name for name in found if name not in SECTIONS]
    out = INTRODUCTION
    for name in names:
        title, about = SECTIONS.get(name, (name, ""))
        out += heading(title, "=")
        if about:
            out += about + "\n\n"
        out += provenance(found[name]) + body(found[name])
        if name == "probe-c" and "probe-ours" in found:
            out += requirements_section([found["probe-ours"], found["probe-c"]])
        if name == "field-c" and "field-ours" in found:
            out += reports_section(found["field-ours"], found["field-c"])
    return out
