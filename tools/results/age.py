# SPDX-License-Identifier: GPL-2.0
"""Compares the commits of results with the tree: whether the module's source has changed since."""

import re
import subprocess

import files

ROOT = files.DIRECTORY.parents[1]

# The module's source.
SOURCE = ("rust", "include")

# Ignores lines that decide nothing: blank ones, and comments of Rust. `$` would match at the end of
# any line.
NO_COMMENTS = "-I^[ \t]*(//|\n)"

COMMIT = re.compile(r"\b[0-9a-f]{12,40}\b")


def git(*arguments):
    """The exit status and the output; no status if there is no git."""
    try:
        run = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "-C", ROOT, *arguments],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                             check=False)
    except FileNotFoundError:
        return None, ""
    return run.returncode, run.stdout.strip()


def has_history():
    """Whether this is a clone with all commits: an archive or a shallow clone tells nothing."""
    return git("rev-parse", "--show-prefix", "--is-shallow-repository") == (0, "false")


def commits(results):
    """The commits that a file names, also those of its rows."""
    text = " ".join([results.header.get("commit", ""),
                     *(row.get("commit", "") for row in results.rows)])
    return list(dict.fromkeys(COMMIT.findall(text)))


def strangers(results):
    """The commits that are not in the history of this tree."""
    return [commit for commit in commits(results)
            if git("merge-base", "--is-ancestor", commit, "HEAD")[0] != 0]


def has_changed(results):
    """Whether the source of the tree, with changes that are not committed, differs from that of any
    commit of the results, but for comments. Of an unknown commit, or a tree with changes, it may."""
    return (not commits(results) or "dirty" in results.header["commit"] or
            any(git("diff", "--quiet", NO_COMMENTS, commit, "--", *SOURCE)[0] != 0
                for commit in commits(results)))


def changes(results):
    """The number of commits that have changed the source since the oldest commit of the results. Of
    an unknown commit the file names a later one, and at least as many have."""
    oldest = commits(results) or re.findall(r"before ([0-9a-f]+)", results.header["commit"])
    counts = [git("rev-list", "--count", f"{commit}..HEAD", "--", *SOURCE)[1]
              for commit in oldest]
    return max((int(count) for count in counts if count), default=None)
