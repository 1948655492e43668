# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The rules of the rooms under rust/: what each may use, and where `unsafe` is.

# The attribute that forbids it is the only place with the word.
rule_forbid_unsafe() {
	local room
	for room in wire engine client server; do
		[ -d "rust/$room" ] || continue
		code "rust/$room" | grep -wE 'unsafe|unsafe_code' | grep -v '#!\[forbid(unsafe_code)\]'
		grep -q '^#!\[forbid(unsafe_code)\]' "rust/$room/mod.rs" ||
			echo "rust/$room/mod.rs: lacks #![forbid(unsafe_code)]"
	done
}

# Every unsafe block or impl has its SAFETY comment right above it.
rule_safety_comments() {
	local file
	find rust -name '*.rs' -not -name generated.rs | sort | while read -r file; do
		awk -v file="$file" '
			/\/\/ SAFETY:/ { near = 12 }
			/^[[:space:]]*\/\// { if (/SAFETY/) near = 12; next }
			/unsafe (\{|impl)/ && !/unsafe_op/ {
				if (near <= 0) print file ":" NR ": unsafe without SAFETY"
			}
			{ near-- }' "$file"
	done
}

# What each room may import, and that no files import each other: tools/rooms/rooms.toml.
rule_imports() {
	local said
	said=$(tools/rooms/run 2>&1) || echo "${said:-tools/rooms/run failed}"
}

# wire and engine compile without a kernel.
rule_core_only() {
	code rust/wire rust/engine | grep -E '\b(kernel|pin_init|macros|std|alloc)::'
}

# Lines of code with their place, comments left out.
code() {
	grep -rn --include='*.rs' '' "$@" | grep -vE '^[^:]+:[0-9]+:[[:space:]]*//' | sed 's|[[:space:]]// .*||'
}
