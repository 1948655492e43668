#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Says where the instructions went that tools/bench/count.c counted.

  instructions.py modules DIRECTORY     a row for each row of tools/bench/rows, or of --rows, that both
                                        modules have run, as tools/bench/run records them
  instructions.py calls DIRECTORY       the same with the events of EVENTS in place of instructions
  instructions.py growth DIRECTORY      the same with the instructions, and how often a lock was found
                                        taken
  instructions.py steps DIRECTORY       the same with the instructions of the RPC layers by tools/bench/steps
  instructions.py functions DIRECTORY   a row for each function of one row, by the difference
  instructions.py split DIRECTORY       the RPC layers by step, and then by file of this module's source,
                                        or by function, with columns for each row
  instructions.py floor DIRECTORY       a row for each row of --rows, of raw verbs alone

DIRECTORY has, for this module (ours), the C module (c) or raw verbs (verbs), NAME.blocks of the
plugin, NAME.kallsyms of the guest, and NAME.bench, what guest.sh printed. All figures are per
operation, and medians of the rounds. With --module, "functions" and "split" know the source of this
module's instructions, and not only the function that has absorbed others.
"""

import argparse
import bisect
import collections
import functools
import pathlib
import re
import statistics
import sys

import source

# What remains of an operation on a card that does its own transport, beside NFS.
RPC_LAYERS = ("rpcrdma", "sunrpc", "ib_core", "rdma_cm", "ib_cm")

STEPS = pathlib.Path(__file__).parent / "steps"

# Functions of the kernel that exist for Rust alone count to the module that calls them: what these
# do is inline in C.
RUST_IN_KERNEL = re.compile(r"_R|rust_helper_")


@functools.cache
def rows():
    """The lines of the file of rows, by number."""
    lines = ARGUMENTS.rows.read_text().splitlines()
    names = ("row", "operation", "bytes", "version", "warm", "measured")
    return dict(enumerate((dict(zip(names, line.split())) for line in lines
                           if line and not line.startswith("#")), 1))


# What else is counted: calls of these functions of the kernel, in the whole guest. rxe invalidates an
# MR by the same function for a LOCAL_INV and for a Send with Invalidate. It calls do_complete() once for
# each work request of a Send Queue, whether signaled or not.
EVENTS = {
    "doorbells": r"rxe_post_(send|recv)",
    "work_requests": r"post_one_recv|do_complete",
    "completions": r"rxe_cq_post",
    "registrations": r"rxe_reg_fast_mr",
    "invalidations": r"rxe_invalidate_mr",
    "allocations": r"(__kmalloc|kmem_cache_alloc)\w*_noprof",
    "page_allocations": r"(__alloc_pages|__alloc_frozen_pages|alloc_pages_bulk)_noprof",
    "wake_ups": r"try_to_wake_up",
    "work_items": r"__queue_work",
    "contended": (r"(native|__pv)_queued_spin_lock_slowpath|queued_(read|write)_lock_slowpath|"
                  r"__mutex_lock_slowpath|rwsem_down_(read|write)_slowpath"),
    "locks": r"_raw_(spin|read|write)_(try)?lock(_bh|_irq|_irqsave)?|mutex_lock|down_(read|write)",
}


# How figures are printed. Few locks are found taken.
FORMS = {**dict.fromkeys(EVENTS, ".1f"), "contended": ".3f"}


class Symbols:
    """The functions of a guest's kernel and modules."""

    def __init__(self, path):
        found = {}
        for line in path.read_text().splitlines():
            address, _, name, *module = line.split()
            if name.startswith(".L"):
                continue
            found.setdefault(int(address, 16), (module[0].strip("[]") if module else "vmlinux",
                                                name))
        self.addresses = sorted(found)
        self.names = [found[address] for address in self.addresses]

    def of_module(self, module):
        """The addresses of the functions of a module, by name."""
        return {name: address for address, (of, name) in zip(self.addresses, self.names)
                if of == module}

    def entered_at(self, address):
        """The function that begins there, or None."""
        i = bisect.bisect_left(self.addresses, address)
        return self.names[i][1] if self.addresses[i:i + 1] == [address] else None

    def at(self, address):
        """Module and function."""
        if not address:
            return "user space", ""
        i = bisect.bisect_right(self.addresses, address) - 1
        module, name = self.names[i] if i >= 0 else ("vmlinux", "unknown")
        if module == "vmlinux" and RUST_IN_KERNEL.match(name):
            module = "rpcrdma"
        return module, name


@functools.cache
def events_of(function):
    return [event for event, calls in EVENTS.items() if function and re.fullmatch(calls, function)]


class Measured:
    """What a guest counted: for each row its rounds, and for each round the instructions of an
    operation, by module, symbol and function of the source, and under "events" those of EVENTS."""

    def __init__(self, directory, name, module=None):
        symbols = Symbols(directory / f"{name}.kallsyms")
        text = source.Source(module, symbols.of_module("rpcrdma")) if module else None
        known = rows()
        self.rpcs, self.rounds = {}, collections.defaultdict(list)
        for line in (directory / f"{name}.bench").read_text().splitlines():
            _, number, row, count = line.split()
            if known[int(number)]["row"] != row:
                sys.exit(f"error: row {number} of {name} is {row}: {ARGUMENTS.rows} has changed")
            self.rpcs[row] = count
        for line in (directory / f"{name}.blocks").read_text().splitlines():
            first, value, *runs = line.split()
            if first == "row":
                row = known[int(value)]
                here = collections.Counter()
                self.rounds[row["row"]].append(here)
                continue
            address, measured = int(first, 16), int(row["measured"])
            of, symbol = symbols.at(address)
            rest = int(value)
            if text and of == "rpcrdma":
                times = int(runs[0])
                for function in text.of(address, rest // times):
                    here[of, symbol, function] += times / measured
                    rest -= times
            here[of, symbol, ""] += rest / measured
            for event in events_of(symbols.entered_at(address)):
                here["events", event, ""] += int(runs[0]) / measured

    def median(self, row, figure):
        """The median of the rounds of what the function gives for a round."""
        return statistics.median(map(figure, self.rounds[row]))


# The columns of a row, and the modules of which each is the sum; none: all.
COLUMNS = {"": None, "layers": RPC_LAYERS, "rpcrdma": ("rpcrdma",), "sunrpc": ("sunrpc",),
           "ib_core": ("ib_core",), "device": ("rdma_rxe",), "vmlinux": ("vmlinux",)}


def sum_of(modules_summed):
    """The function that gives the instructions of these modules in a round."""
    return lambda counts: sum(count for (module, *_), count in counts.items() if module != "events"
                              and (modules_summed is None or module in modules_summed))


def calls_of(event):
    """The function that gives the calls of an event in a round."""
    return lambda counts: counts["events", event, ""]


def both(directory, module=None):
    return {"this": Measured(directory, "ours", module), "C": Measured(directory, "c")}


def by_row(measured, columns):
    """A row for each row of the file of rows; columns have functions from the counts of a round."""
    yield ("row", "operation", "bytes", "nfs", *(f"{title}_rpcs" for title in measured),
           *("_".join(filter(None, (title, column))) for column in columns for title in measured))
    for row in rows().values():
        name = row["row"]
        if all(name in each.rounds for each in measured.values()):
            yield (name, row["operation"], row["bytes"], row["version"],
                   *(each.rpcs[name] for each in measured.values()),
                   *(format(each.median(name, figure), FORMS.get(column, ".0f"))
                     for column, figure in columns.items() for each in measured.values()))


def instructions():
    return {column: sum_of(summed) for column, summed in COLUMNS.items()}


def modules(directory):
    return by_row(both(directory), instructions())


def calls(directory):
    return by_row(both(directory), {event: calls_of(event) for event in EVENTS})


def growth(directory):
    return by_row(both(directory), instructions() | {"contended": calls_of("contended")})


def readable(symbols):
    """Rust's names without this module's own name, the hashes of crates, and paths in arguments."""
    return {symbol: short(re.sub(r"\brpcrdma(\[[0-9a-f]+\])?::|\[[0-9a-f]{8,}\]", "", text))
            for symbol, text in source.demangled(symbols).items()}


def short(name):
    out, arguments = "", []
    for token in re.findall(r"(?:\w+::)+\w+|->|.", name):
        if token == "<":
            arguments.append(out[-1:].isalnum() or out[-1:] in ("_", ":"))
        elif token == ">" and arguments:
            arguments.pop()
        elif any(arguments):
            token = token.rpartition("::")[2]
        out += token
    return out


def keys_of(measured, of=None):
    """What was counted, by module, symbol and function of the source."""
    return sorted({key for each in measured for rounds in each.rounds.values() for counts in rounds
                   for key in counts if (key[0] in of if of else key[0] != "events")})


def functions(directory):
    measured = both(directory, ARGUMENTS.module).values()
    (row,) = set().union(*(each.rounds for each in measured))
    keys = keys_of(measured)
    names = readable({symbol for _, symbol, _ in keys})
    costs = [collections.Counter(), collections.Counter()]
    for each, cost in zip(measured, costs):
        for key in keys:
            module, symbol, function = key
            cost[module, function or names[symbol]] += each.median(row, lambda counts, key=key:
                                                                   counts[key])
    yield "module", "function", "this", "C", "more"
    for key in sorted(costs[0] | costs[1], key=lambda key: (costs[1][key] - costs[0][key], key)):
        yield (*key, *(f"{value:.0f}" for value in (costs[0][key], costs[1][key],
                                                     costs[0][key] - costs[1][key])))


def step_of(names):
    """The function that gives the step of a module's symbol, and the names of all steps."""
    lines = [line.split(maxsplit=2) for line in STEPS.read_text().splitlines()
             if line and not line.startswith("#")]
    return (functools.cache(lambda module, symbol: next(
        step for step, of, pattern in lines if module == of and re.match(pattern, names[symbol]))),
        list(dict.fromkeys(step for step, *_ in lines)))


def steps(directory):
    measured = both(directory)
    keys = keys_of(measured.values(), RPC_LAYERS)
    of, known = step_of(readable({symbol for _, symbol, _ in keys}))

    def sum_of_step(step):
        return lambda counts: sum(count for (module, symbol, _), count in counts.items()
                                  if module in RPC_LAYERS and of(module, symbol) == step)
    return by_row(measured, {step: sum_of_step(step) for step in known})


# Lines with less than this part of the RPC layers of every row are summed.
LEAST = 0.002


def split(directory):
    measured = both(directory, ARGUMENTS.module)
    keys = keys_of(measured.values(), RPC_LAYERS)
    names = readable({symbol for _, symbol, _ in keys})
    of, known = step_of(names)
    columns = [(title, row["row"]) for row in rows().values() for title in measured
               if all(row["row"] in each.rounds for each in measured.values())]
    costs, layers = collections.defaultdict(collections.Counter), {}
    for title, row in columns:
        layers[title, row] = measured[title].median(row, sum_of(RPC_LAYERS))
        for key in keys:
            module, symbol, function = key
            cost = measured[title].median(row, lambda counts, key=key: counts[key])
            costs[of(module, symbol), function.partition(":")[0] or names[symbol]][title, row] += cost
    for step, where in list(costs):
        cost = costs[step, where]
        if all(cost[column] < LEAST * layers[column] for column in columns):
            costs[step, "other"].update(costs.pop((step, where)))
    yield "step", "where", *("_".join(column) for column in columns)
    for step, where in sorted(costs, key=lambda key: (known.index(key[0]), key[1] == "other",
                                                      -costs[key].total())):
        yield step, where, *(f"{costs[step, where][column]:.0f}" for column in columns)


def floor(directory):
    measured = Measured(directory, "verbs")
    columns = {"all": None, "module": ("raw_verbs",), "ib_core": ("ib_core",),
               "device": ("rdma_rxe",), "vmlinux": ("vmlinux",)}
    yield "row", "operation", "bytes", *columns
    for row in rows().values():
        yield (row["row"], row["operation"], row["bytes"],
               *(f"{measured.median(row['row'], sum_of(summed)):.0f}"
                 for summed in columns.values()))


WHAT = {"modules": modules, "calls": calls, "growth": growth, "steps": steps,
        "functions": functions, "split": split, "floor": floor}


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=WHAT)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--module", type=pathlib.Path, help="rpcrdma.ko, with debug information")
    parser.add_argument("--rows", type=pathlib.Path, default=pathlib.Path(__file__).parent / "rows")
    return parser.parse_args()


def main():
    for row in WHAT[ARGUMENTS.what](ARGUMENTS.directory):
        print(*row, sep="\t")


ARGUMENTS = parse()
main()
