# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Rules that run compilers and linters. Except for shellcheck and cargo, these are the versions of
# the toolchain tree.

in_tree() {
	"$env_dir/enter" --src . "$@"
}

# sources EXTENSION...: prints the files with these extensions, except generated ones. Directories
# in which cargo and the tests create and delete files are not searched.
sources() {
	local ext
	for ext; do
		find . '(' -name target -o -path ./out -o -path ./.git ')' -prune -o \
			-name "*.$ext" -type f -not -name generated.rs -not -name '*.mod.c' -print
	done | sort
}

# Prints the scripts that start with #!. shellcheck follows these to the files that they source.
scripts() {
	grep -rlE --exclude-dir=target '^#!/bin/(ba)?sh' tools selftests .ci 2>/dev/null | sort
}

# Prints the places that rustfmt would change, or all of its output if it names none.
rule_rustfmt() {
	local said places
	said=$(sources rs | xargs "$env_dir/enter" --src . rustfmt --check --edition 2021 \
		--config-path "/usr/src/linux/.rustfmt.toml" 2>&1) && return
	places=$(grep -E '^(Diff in|error|Error)' <<<"$said" | sed 's|/src/||' | sort -u)
	echo "${places:-rustfmt failed: $said}"
}

# Warnings of make that are due to the clock of the machine having been set back.
SKEW='^make.*: [Ww]arning: .*(Clock skew detected|modification time .* in the future)'

# Builds a copy of the module with clippy, so that the objects of the checkout remain valid. The
# kernel's msrv is the oldest rustc that builds it; incompatible_msrv finds what is younger.
rule_clippy() {
	local copy said
	copy=$(mktemp -d)
	cp -r Kbuild include rust "$copy/"
	find "$copy" '(' -name '*.o' -o -name '.*.cmd' ')' -delete
	said=$("$env_dir/enter" --src "$copy" make -s -C /obj M=/src CLIPPY=1 \
		KRUSTFLAGS=-Wclippy::incompatible_msrv -j"$(nproc)" modules 2>&1) ||
		echo "the build with clippy failed"
	grep -vE -e '^Skipping BTF generation' -e "$SKEW" <<<"$said"
	rm -r "$copy"
}

# The fuzz targets use wire and engine, but only the host tests build them. A check without the
# fuzzer's instrumentation is quick.
rule_fuzz_compiles() {
	local said
	said=$({ fetch_crates tools/fuzz; with_cargo tools/fuzz cargo check --quiet --locked; } 2>&1) ||
		echo "cargo check failed: $said"
}

# The crates of nfsrdma are in a directory of the toolchain tree, as with_cargo puts them.
rule_nfsrdma_clippy() {
	local said
	said=$(tries "$env_dir/enter" --net --src . env -C tools/nfsrdma CARGO_TARGET_DIR=target/check \
		cargo clippy --quiet --locked --all-targets -- -Dwarnings 2>&1) || echo "$said"
}

# The C programs of the probe and of the selftests, and the module of the benchmark, compile without
# warnings. They are built from scratch, because a compiler does not repeat the warnings of an
# up-to-date object.
rule_programs_compile() {
	local dir out said
	mkdir -p out
	out=$(mktemp -d out/check.XXXXXX) || return
	for dir in tools/probe selftests tools/bench/modules; do
		said=$("$env_dir/enter" --src . make -s -C "/src/$dir" KDIR=/obj OUT="/src/$out" 2>&1) ||
			echo "$dir does not compile: $said"
		grep -E '(warning|error):' <<<"$said" | grep -vE "$SKEW" | sed "s|^|$dir/|"
	done
	rm -r "$out"
}

# What the module is built with if the kernel lacks the names that Kbuild probes: compat, and the
# variants of files.
rule_compat_compiles() {
	local out said
	mkdir -p out
	out=$(mktemp -d out/check.XXXXXX) || return
	cp -r Kbuild include rust "$out"
	find "$out" -name '.*' -type f -delete
	said=$("$env_dir/enter" --src . make -s -C /obj "M=/src/$out" probes-rust= \
		probes-c= KRUSTFLAGS=-Dwarnings modules 2>&1) ||
		echo "what older kernels need does not compile on this one: $said"
	rm -r "$out"
}

# Variables that a file in a lib directory sets may be used only by files that source it (SC2034).
# tools/env/recipes.sh has no #! and is sourced by a command in a string.
rule_shellcheck() {
	{ scripts; echo ./tools/env/recipes.sh; } | xargs shellcheck -x -a -S warning -f gcc | grep -v '/lib/.*SC2034' | sort -u
}

# The C of the module, except headers of trace events, whose macros checkpatch rejects.
rule_checkpatch() {
	sources c h | grep -E '^./(rust|include)/' | grep -v '^./include/trace' | xargs "$env_dir/enter" --src . \
		perl "/usr/src/linux/scripts/checkpatch.pl" \
		--no-tree --no-summary --terse --ignore FILE_PATH_CHANGES,CONST_STRUCT -f
}
