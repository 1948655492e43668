# SPDX-License-Identifier: GPL-2.0
"""Reads an output that a harness keeps under out/: KTAP between other lines."""

import dataclasses
import pathlib
import re


@dataclasses.dataclass
class Case:
    name: str
    verdict: str        # "passed", "failed", "skipped" or "xfailed"
    reason: str         # behind SKIP or XFAIL
    said: list          # comments since the previous case


@dataclasses.dataclass
class Output:
    path: pathlib.Path
    commit: str = "unknown"
    date: str = ""
    kernel: str = ""
    module: str = ""
    about: str = ""             # versions of programs in the guest
    planned: int = 0
    skipped: str = ""           # why the whole program was skipped
    seconds: str = ""           # how long the whole program took
    complaints: int = 0         # lines in which the kernel or the harness reports an error
    cases: list = dataclasses.field(default_factory=list)
    notes: list = dataclasses.field(default_factory=list)   # comments after the last case

    def count(self, verdict):
        return sum(case.verdict == verdict for case in self.cases)


MODULES = {"ours": "this", "rust": "this", "c": "C"}

DIRECTIVE = re.compile(r"\s+# (SKIP|XFAIL)\b\s*(.*)$", re.IGNORECASE)


def verdict_of(text, passed):
    """Splits "NAME # SKIP REASON"."""
    match = DIRECTIVE.search(text)
    if not passed:
        return text, "failed", ""
    if not match:
        return text, "passed", ""
    verdict = "skipped" if match[1].upper() == "SKIP" else "xfailed"
    return text[:match.start()], verdict, match[2]


def read(path):
    output = Output(pathlib.Path(path))
    plans, group, said = {}, None, []
    with open(path, errors="replace") as lines:
        for line in lines:
            line = line.rstrip("\n")
            if match := re.match(r"# commit (.*) on (\d{4}-\d\d-\d\d)$", line):
                output.commit, output.date = match[1], match[2]
            elif match := re.match(r"# rpcrdma: (\w+), .*Linux (\S+)$", line):
                output.module = MODULES.get(match[1], match[1])
                output.kernel = match[2]
            elif match := re.match(r"# run on \S+ ?(.*)$", line):
                output.about = match[1]
            elif match := re.match(r"# ended after (\d+) s$", line):
                output.seconds = match[1]
            elif match := re.match(r"# group (\w+), kernel ([^,]*)", line):
                group, output.kernel = match[1], match[2]
            elif line.startswith("retry: "):
                # The emulator failed and the program starts again. Earlier failures count.
                output.cases = [case for case in output.cases if case.verdict == "failed"]
                plans, said = {}, []
            elif match := re.match(r"1\.\.(\d+)", line):
                # A group of the probe that continues in another guest repeats its plan.
                key = group if group is not None else len(plans)
                plans[key] = int(match[1])
                if skip := re.match(r"1\.\.0\s*#\s*SKIP\s*(.*)", line, re.IGNORECASE):
                    output.skipped = skip[1]
            elif match := re.match(r"(not )?ok (?:\d+ )?- (.*)$", line):
                name, verdict, reason = verdict_of(match[2], not match[1])
                output.cases.append(Case(name, verdict, reason, said))
                said = []
            elif line.startswith("# case "):
                said = []
            elif line.startswith("# ") and not re.match(r"# (took|reached) ", line):
                said.append(line[2:])
            elif re.match(r"kernel log not clean|error: |Bail out!", line):
                output.complaints += 1
    output.planned = sum(plans.values())
    output.notes = said
    return output
