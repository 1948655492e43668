# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What other people's tools say. Everything runs in the toolchain tree, so that
# all see the same versions.

in_tree() {
	"$env_dir/enter" --src . "$@"
}

# Files that are the project's, not generated ones: sources EXTENSION... Where cargo and the
# tests come and go, nobody looks.
sources() {
	local ext
	for ext; do
		find . '(' -name target -o -path ./out -o -path ./.git ')' -prune -o \
			-name "*.$ext" -type f -not -name generated.rs -not -name '*.mod.c' -print
	done | sort
}

# Scripts that are run; those that they source are checked with them.
scripts() {
	grep -rlE --exclude-dir=target '^#!/bin/(ba)?sh' tools selftests .ci 2>/dev/null | sort
}

# It tells of each place; what it says else is of interest where it tells of none.
rule_rustfmt() {
	local said places
	said=$(sources rs | xargs "$env_dir/enter" --src . rustfmt --check --edition 2021 \
		--config-path "/usr/src/linux-source-$KERNEL_SERIES/.rustfmt.toml" 2>&1) && return
	places=$(grep -E '^(Diff in|error|Error)' <<<"$said" | sed 's|/src/||' | sort -u)
	echo "${places:-rustfmt failed: $said}"
}

# What make says of a machine's clock that was set back.
SKEW='^make.*: [Ww]arning: .*(Clock skew detected|modification time .* in the future)'

# The module is built with clippy in a copy: the checkout's own objects stay.
rule_clippy() {
	local copy said
	copy=$(mktemp -d)
	cp -r Kbuild include rust "$copy/"
	find "$copy" '(' -name '*.o' -o -name '.*.cmd' ')' -delete
	said=$("$env_dir/enter" --src "$copy" make -s -C /obj M=/src CLIPPY=1 -j"$(nproc)" modules 2>&1) ||
		echo "clippy did not come to its end"
	grep -vE -e '^Skipping BTF generation' -e "$SKEW" <<<"$said"
	rm -r "$copy"
}

# Fuzz targets stand on wire and engine as the module does, and are built nowhere else but
# for the host tests. Without what the fuzzer looks for in them that takes a moment.
rule_fuzz_compiles() {
	local said
	said=$({ fetch_crates tools/fuzz; with_cargo tools/fuzz cargo check --quiet --locked; } 2>&1) ||
		echo "cargo check failed: $said"
}

# The C programs: the probe, which "make test" does not run, and those of the tests. All of
# it anew: a compiler warns once.
rule_programs_compile() {
	local dir out said
	mkdir -p out
	out=$(mktemp -d out/check.XXXXXX) || return
	for dir in tools/probe selftests; do
		said=$("$env_dir/enter" --src . make -s -C "/src/$dir" OUT="/src/$out" 2>&1) ||
			echo "$dir does not compile: $said"
		grep -E '(warning|error):' <<<"$said" | grep -vE "$SKEW" | sed "s|^|$dir/|"
	done
	rm -r "$out"
}

# What a file that is sourced sets, and nobody here uses, somebody else does. The recipes are
# sourced in a string.
rule_shellcheck() {
	{ scripts; echo ./tools/env/recipes.sh; } | xargs shellcheck -x -a -S warning -f gcc | grep -v '/lib/.*SC2034' | sort -u
}

# The module's own C. Trace events are macros by their nature; checkpatch has no
# good word for them.
rule_checkpatch() {
	sources c h | grep -E '^./(rust|include)/' | grep -v '^./include/trace' | xargs "$env_dir/enter" --src . \
		perl "/usr/src/linux-source-$KERNEL_SERIES/scripts/checkpatch.pl" \
		--no-tree --no-summary --terse --ignore FILE_PATH_CHANGES,CONST_STRUCT -f
}
