# SPDX-License-Identifier: GPL-2.0
"""Finds the functions of the source in the instructions of rpcrdma.ko, by its debug information.

The compiler inlines most functions of Rust: the symbol of an instruction names the function that has
absorbed the others.
"""

import bisect
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).parents[2]


def run(command, text=None):
    return subprocess.run(command, input=text, text=True, check=True, stdout=subprocess.PIPE).stdout


def demangled(names):
    """The names of Rust as c++filt prints them, by the mangled ones."""
    names = sorted(names)
    return dict(zip(names, run(["c++filt"], "\n".join(names)).splitlines()))


def in_tree(location):
    """The file under rust/ of a frame of addr2line, or None for core and the kernel's crates."""
    path = re.search(r"/(rust/[\w/]+\.rs):", location)
    return path[1].removeprefix("rust/") if path and (ROOT / path[1]).is_file() else None


def bare(name):
    """The last component of a demangled path, without arguments and closures."""
    depth, out = 0, ""
    for before, token in zip(" " + name, name):
        if token == "<":
            depth += 1
        if not depth:
            out += token
        if token == ">" and before != "-":
            depth -= 1
    parts = [part for part in re.sub(r"\{[^}]*\}|\[[0-9a-f]+\]", "", out).split("::") if part]
    return parts[-1].strip() if parts else name


class Source:
    """The functions of the source in the text of one build of the module."""

    def __init__(self, module, symbols):
        """symbols: the addresses of its functions in the guest, by name."""
        listing = run(["objdump", "-d", "--no-show-raw-insn", "-j", ".text", module])
        self.addresses = [int(address, 16)
                          for address in re.findall(r"^ *([0-9a-f]+):\t", listing, re.M)]
        begins = {name: int(address, 16)
                  for address, name in re.findall(r"^([0-9a-f]+) <(.+)>:$", listing, re.M)}
        found = {symbols[name] - begins[name] for name in symbols.keys() & begins.keys()
                 if name.startswith("_R")}
        if len(found) != 1:
            raise SystemExit(f"error: {module} is not the module that ran: give its file to --module")
        (self.base,) = found
        self.names = self._names(module)

    def _names(self, module):
        """For each instruction the innermost function of the tree, as "file: function", or ""."""
        output = run(["addr2line", "-j", ".text", "-a", "-i", "-f", "-e", module],
                     "\n".join(map(hex, self.addresses)))
        frames = []
        for block in re.split(r"^0x[0-9a-f]+\n", output, flags=re.M)[1:]:
            lines = block.splitlines()
            frames.append(next(((file, name) for name, location in zip(lines[::2], lines[1::2])
                                if (file := in_tree(location))), None))
        names = demangled({frame[1] for frame in frames if frame})
        return [f"{frame[0]}: {bare(names[frame[1]])}" if frame else "" for frame in frames]

    def of(self, address, count):
        """The functions of so many instructions from an address of the guest on, or none."""
        i = bisect.bisect_left(self.addresses, address - self.base)
        if self.addresses[i:i + 1] != [address - self.base]:
            return []
        return self.names[i:i + count]
