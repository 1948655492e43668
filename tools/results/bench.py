# SPDX-License-Identifier: GPL-2.0
"""The instructions and the events of operations (tools/bench/run): tables and chart."""

import math

import files

# Columns of the file, by what a reader compares.
FIGURES = {"RPC layers": "_layers", "rpcrdma.ko": "_rpcrdma", "all": ""}


def size(count):
    for shift, unit in ((20, "MiB"), (10, "KiB")):
        if count >= 1 << shift:
            return f"{count >> shift} {unit}"
    return f"{count} bytes"


def title(row):
    """The operation as a reader knows it."""
    name, _, how = row["operation"].partition("-")
    if how == "buffered":
        return f"buffered {name} {size(int(row['bytes']))}"
    if how.endswith("-at-once"):
        return f"{name} {size(int(row['bytes']))}, {how.split('-')[0]} at once"
    if row["bytes"] != "0":
        return f"{name} {size(int(row['bytes']))}"
    return f"{' + '.join((name, how)) if how.isupper() else ' '.join((name, how)).strip()}, v{row['nfs']}"


def is_direct(row):
    return row["operation"] in ("READ", "WRITE")


def pair(row, figure):
    """Instructions with this module and with the C module."""
    return tuple(int(row[end + FIGURES[figure]]) for end in ("this", "C"))


def ratio(row, figure):
    ours, theirs = pair(row, figure)
    return ours / theirs


def mean(rows, figure):
    """The geometric mean of the ratios."""
    return math.exp(sum(math.log(ratio(row, figure)) for row in rows) / len(rows))


def span(rows, figure):
    """The least and the largest ratio."""
    ratios = sorted(ratio(row, figure) for row in rows)
    return f"{ratios[0]:.2f} to {ratios[-1]:.2f} times"


def floors():
    """The instructions of raw verbs (tools/bench/floor), by operation and bytes."""
    path = files.DIRECTORY / "bench-floor.tsv"
    rows = files.read(path).rows if path.is_file() else []
    return {(row["operation"].removeprefix("raw-"), row["bytes"]): int(row["all"]) for row in rows}


def table(results):
    """The columns, and the rows with the mean as the last one."""
    columns, floor = ["operation"], floors()
    for figure in FIGURES:
        columns += [f"{figure}, this", "C", "ratio"]
    columns.append("raw verbs")
    rows = []
    for row in results.rows:
        cells = [title(row)]
        for figure in FIGURES:
            ours, theirs = pair(row, figure)
            cells += [f"{ours:,}", f"{theirs:,}", f"{ours / theirs:.3f}"]
        least = floor.get((row["operation"], row["bytes"]))
        rows.append([*cells, f"{least:,}" if least else ""])
    last = ["geometric mean"]
    for figure in FIGURES:
        last += ["", "", f"{mean(results.rows, figure):.3f}"]
    return columns, [*rows, [*last, ""]]


def pairs_table(results):
    """For each operation the figures of the file: with this module, and with C's."""
    figures = [column.removeprefix("this_") for column in results.columns
               if column.startswith("this_") and column != "this_rpcs"]
    return (["operation", *(figure.replace("_", " ") for figure in figures)],
            [[title(row), *(f"{row[f'this_{figure}']} / {row[f'C_{figure}']}" for figure in figures)]
             for row in results.rows])


# The operations of one RPC that take different ways, and an hour without any.
OF_FUNCTIONS = {"getattr3": "GETATTR, v3", "read4k": "READ 4 KiB", "read1m": "READ 1 MiB",
                "write4k": "WRITE 4 KiB", "write1m": "WRITE 1 MiB", "idle": "IDLE hour"}


def functions_table(results):
    """For each step the files of this module and the functions of C, or of both."""
    rows = []
    for row in results.rows:
        pairs = [(row[f"this_{name}"], row[f"C_{name}"]) for name in OF_FUNCTIONS]
        of = [module for i, module in enumerate(("this", "C")) if any(pair[i] != "0" for pair in pairs)]
        if of:
            cells = [" / ".join(pair) if len(of) > 1 else pair[of == ["C"]] for pair in pairs]
            rows.append([row["step"], row["where"], " / ".join(of),
                         *(cell.replace("0 / 0", "") if cell != "0" else "" for cell in cells)])
    return ["step", "file or function", "module", *OF_FUNCTIONS.values()], rows


def chart(results):
    """For each operation two bars: the ratios of the RPC layers, and of all."""
    colours = {"RPC layers": "#2f5d8a", "all": "#9bb8d3"}
    left, unit, top, step = 170, 330, 62, 30    # unit: the length of a ratio of 1, in pixels
    bars = [(title(row), {figure: ratio(row, figure) for figure in colours})
            for row in results.rows]
    bars.append(("geometric mean", {figure: mean(results.rows, figure) for figure in colours}))
    height = top + step * len(bars) + 14
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="640" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        "<!-- SPDX-License-Identifier: GPL-2.0 -->",
        f'<rect width="640" height="{height}" fill="white"/>',
        '<text x="20" y="22" font-size="15">Instructions per operation, '
        "relative to the C module</text>",
    ]
    for i, (figure, colour) in enumerate(colours.items()):
        out += [f'<rect x="{20 + 110 * i}" y="33" width="12" height="12" fill="{colour}"/>',
                f'<text x="{38 + 110 * i}" y="43">{figure}</text>']
    for i, (name, ratios) in enumerate(bars):
        y = top + step * i
        out.append(f'<text x="{left - 8}" y="{y + 16}" text-anchor="end">{name}</text>')
        for j, (figure, value) in enumerate(ratios.items()):
            out += [f'<rect x="{left}" y="{y + 12 * j}" width="{min(value * unit, 430):.0f}" '
                    f'height="11" fill="{colours[figure]}"/>',
                    f'<text x="{left + min(value * unit, 430) + 4:.0f}" y="{y + 12 * j + 9}" '
                    f'font-size="9">{value:.2f}</text>']
    return "\n".join([
        *out, f'<line x1="{left + unit}" x2="{left + unit}" y1="{top - 6}" y2="{height - 10}" '
        'stroke="#888" stroke-dasharray="4"/>',
        f'<text x="{left + unit + 4}" y="{top - 4}" fill="#666">C = 1</text>', "</svg>"]) + "\n"
