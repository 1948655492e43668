#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Says what a program with counters has reached of rust/.

  coverage.py table LCOV TEXT [ROOM...]  a row for each file of these rooms, or of all
  coverage.py check LCOV UNREACHED       the functions of client and server that are not reached and
                                         have no reason in UNREACHED, or are reached and have one
  coverage.py total LCOV                 how many functions of client and server are reached

LCOV and TEXT are what llvm-cov exports in these formats. The instances of a generic function are one
function, and a closure belongs to the lines of its function.
"""

import argparse
import collections
import json
import pathlib
import re
import sys

# The directories of which each function is reached or has a reason.
ROOMS = ("client", "server")

COLUMNS = ("file", "functions", "not reached", "lines", "lines not reached", "regions",
           "regions not reached", "branches", "branches not reached", "numbers of the lines")

# The mangled name of a closure, and of a generic one.
CLOSURE = re.compile(r"_RI?NC")

FUNCTION = re.compile(r"^\s*(?:pub(?:\([a-z: ]+\))? )?(?:const )?fn (\w+)")
BLOCK = re.compile(r"^\s*(?:unsafe )?(?:impl|(?:pub(?:\([a-z: ]+\))? )?trait)\b(.*)")


class File:
    """What is known of a file: how often each line and each function ran."""

    def __init__(self, name):
        self.name = name
        self.lines = collections.Counter()
        self.functions = collections.Counter()
        self.branches = collections.Counter()

    def missed(self):
        return sorted(line for line, count in self.lines.items() if not count)

    def names(self):
        """The name of each function, by its line."""
        text = pathlib.Path(self.name).read_text().splitlines()
        return {line: function_name(text, line - 1) for line in self.functions}


def without_generics(text):
    while (shorter := re.sub(r"<[^<>]*>", "", text.replace("->", ""))) != text:
        text = shorter
    return text


def function_name(text, at):
    """The name of the function at a line: "Type::name" if it is in a block of a type."""
    match = FUNCTION.match(text[at])
    name = match[1] if match else text[at].strip()
    indent = len(text[at]) - len(text[at].lstrip())
    for line in reversed(text[:at]):
        if line.strip() and len(line) - len(line.lstrip()) < indent:
            if block := BLOCK.match(line):
                words = without_generics(block[1]).split(" where ")[0].rstrip(" {").split()
                return f"{words[-1]}::{name}" if words else name
            break
    return name


def in_module(path):
    """The path below the tree, if the file is one of the module."""
    _, rust, rest = path.rpartition("/../rust/")
    return "rust/" + rest if rust else None


def read(lcov):
    """The files of the module, by name."""
    files = {}
    file, starts = None, {}
    for line in pathlib.Path(lcov).read_text().splitlines():
        key, _, value = line.partition(":")
        if key == "SF":
            name, starts = in_module(value), {}
            file = name and files.setdefault(name, File(name))
        elif not file:
            continue
        elif key == "FN":
            start, name = value.split(",", 1)
            starts[name] = int(start)
        elif key == "FNDA":
            count, name = value.split(",", 1)
            if not CLOSURE.match(name):
                file.functions[starts[name]] += int(count)
        elif key == "DA":
            line, count = value.split(",")[:2]
            file.lines[int(line)] += int(count)
        elif key == "BRDA":
            line, block, branch, count = value.split(",")
            file.branches[line, block, branch] += 0 if count == "-" else int(count)
    return files


def regions(text):
    """How many regions each file of the module has, and how many are reached."""
    files = json.loads(pathlib.Path(text).read_text())["data"][0]["files"]
    return {name: file["summary"]["regions"] for file in files
            if (name := in_module(file["filename"]))}


def ranges(numbers):
    """"1-3 7" for 1, 2, 3, 7."""
    runs = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def of_rooms(files, rooms):
    return [files[name] for name in sorted(files) if name.split("/")[1] in rooms]


def zeros(counter):
    return sum(not count for count in counter.values())


def table(args):
    files, known = read(args.lcov), regions(args.text)
    rooms = args.rooms or {name.split("/")[1] for name in files}
    print("\t".join(COLUMNS))
    for file in of_rooms(files, rooms):
        found = known[file.name]
        row = [file.name, len(file.functions), zeros(file.functions),
               len(file.lines), zeros(file.lines), found["count"],
               found["count"] - found["covered"], len(file.branches), zeros(file.branches),
               ranges(file.missed())]
        print("\t".join(map(str, row)))


def check(args):
    """Prints what is wrong; whether nothing is."""
    reasons, reached, unreached, wrong = {}, set(), set(), []
    for number, line in enumerate(pathlib.Path(args.unreached).read_text().splitlines(), 1):
        if line and not line.startswith("#"):
            file, name, reason, *rest = (*line.split("\t"), "", "")
            if not reason or any(rest):
                wrong.append(f"{args.unreached}:{number}: not a file, a function and a reason")
            reasons[file, name] = number
    for file in of_rooms(read(args.lcov), ROOMS):
        names = file.names()
        for line, count in file.functions.items():
            (reached if count else unreached).add((file.name, names[line]))
    for file, name in sorted(unreached - reasons.keys()):
        wrong.append(f"{file}: no play reaches {name}, and {args.unreached} has no reason")
    for key, number in reasons.items():
        if key not in unreached:
            what = "a play reaches" if key in reached else "there is no"
            wrong.append(f"{args.unreached}:{number}: {what} {key[1]} in {key[0]}")
    print("\n".join(wrong), end="\n" if wrong else "")
    return not wrong


def total(args):
    files = of_rooms(read(args.lcov), ROOMS)
    count = sum(len(file.functions) for file in files)
    missed = sum(zeros(file.functions) for file in files)
    print(f"{count - missed} functions reached, {missed} not")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for run, names in ((table, ("lcov", "text")), (check, ("lcov", "unreached")),
                       (total, ("lcov",))):
        command = commands.add_parser(run.__name__)
        for name in names:
            command.add_argument(name)
        if run is table:
            command.add_argument("rooms", nargs="*")
        command.set_defaults(run=run)
    args = parser.parse_args()
    sys.exit(args.run(args) is False)


main()
