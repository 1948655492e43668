# SPDX-License-Identifier: GPL-2.0
"""What README.md shows of the results: a table and a chart of Documentation/results/bench.tsv."""

import files
import page

README = files.DIRECTORY.parents[1] / "README.md"
CHART = files.DIRECTORY.parent / "bench.svg"

BEGIN = "<!-- begin: written by tools/results/render --readme -->\n\n"
END = "<!-- end -->\n"


def bench():
    return files.read(files.DIRECTORY / "bench.tsv")


def section():
    results = bench()
    out = "| Operation   | This module | C module  | Ratio |\n"
    out += "|-------------|------------:|----------:|------:|\n"
    for operation, count, ours, theirs, ratio in page.bench_rows(results):
        name = f"{operation} {page.size(count)}"
        out += f"| {name:11} | {ours:11,} | {theirs:9,} | {ratio:.3f} |\n"
    return out + "\nCommit {commit}; Linux {kernel}; {date}.\n\n".format_map(results.header)


def readme():
    """README.md as it is to be."""
    text = README.read_text()
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit("error: README.md lacks the marks that tools/results/render looks for")
    return before + begin + section() + end + after


def chart(results):
    """The ratios as bars."""
    full, floor = 190, 250      # pixels for a ratio of 1; where the bars stand
    out = [
        '<svg xmlns="http://www.w3.org/2000/svg" width="640" height="300" '
        'font-family="sans-serif" font-size="13">',
        "<!-- SPDX-License-Identifier: GPL-2.0 -->",
        '<rect width="640" height="300" fill="white"/>',
        '<text x="20" y="24" font-size="15">Instructions per direct I/O, '
        "relative to the C module</text>",
        f'<line x1="20" x2="620" y1="{floor - full}" y2="{floor - full}" stroke="#888" '
        'stroke-dasharray="4"/>',
        f'<text x="580" y="{floor - full - 5}" fill="#666">C = 1</text>',
    ]
    for i, (operation, count, ours, _, ratio) in enumerate(page.bench_rows(results)):
        x, height = 40 + i * 145, min(ratio * full, 215)
        colour = "#3a7d44" if ratio <= 1 else "#b5651d"
        out += [
            f'<rect x="{x}" y="{floor - height:.1f}" width="80" height="{height:.1f}" '
            f'fill="{colour}"/>',
            f'<text x="{x + 40}" y="{floor - height + 20:.1f}" fill="white" '
            f'text-anchor="middle">{ratio:.3f}</text>',
            f'<text x="{x + 40}" y="{floor + 18}" text-anchor="middle">'
            f"{operation} {page.size(count)}</text>",
            f'<text x="{x + 40}" y="{floor + 35}" text-anchor="middle" fill="#666">{ours}</text>',
        ]
    return "\n".join([*out, "</svg>"]) + "\n"
