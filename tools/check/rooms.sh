# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Rules for the rooms under rust/: what each may import, and which may contain `unsafe`.

# Each of these rooms has the attribute #![forbid(unsafe_code)], and no other mention of `unsafe`.
rule_forbid_unsafe() {
	local room
	for room in wire engine client server; do
		[ -d "rust/$room" ] || continue
		code "rust/$room" | grep -wE 'unsafe|unsafe_code' | grep -v '#!\[forbid(unsafe_code)\]'
		grep -q '^#!\[forbid(unsafe_code)\]' "rust/$room/mod.rs" ||
			echo "rust/$room/mod.rs: lacks #![forbid(unsafe_code)]"
	done
}

# Each unsafe block and unsafe impl has a SAFETY comment at most 12 lines above it.
rule_safety_comments() {
	local file
	find rust -name '*.rs' -not -name generated.rs | sort | while read -r file; do
		awk -v file="$file" '
			/\/\/ SAFETY:/ { near = 12 }
			/^[[:space:]]*\/\// { if (/SAFETY/) near = 12; next }
			/unsafe (\{|impl)/ && !/unsafe_op/ {
				if (near <= 0) print file ":" NR ": unsafe without a SAFETY comment"
			}
			{ near-- }' "$file"
	done
}

# Rooms import only what tools/rooms/rooms.toml allows, and files import each other only there.
rule_imports() {
	local said
	said=$(tools/rooms/run 2>&1) || echo "${said:-tools/rooms/run failed}"
}

# wire and engine use the core crate alone, so that tools/host can compile them.
rule_core_only() {
	code rust/wire rust/engine | grep -E '\b(kernel|pin_init|macros|std|alloc)::'
}

# What types do not enforce: P9 and P10 in Documentation/architecture.rst. The files of ServerEp,
# AcceptQueue and XprtTimer enqueue transports; client and server forget no value.
rule_obligations() {
	code rust | grep -F '.enqueue()' | grep -vE '^rust/(server/(ep|listener)|sunrpc/svc/timer)\.rs:'
	code rust/client rust/server | grep -E '\b(forget|leak)\(|\bManuallyDrop\b'
}

# code DIR...: prints FILE:LINE:TEXT for each line of Rust, without comments.
code() {
	grep -rn --include='*.rs' '' "$@" | grep -vE '^[^:]+:[0-9]+:[[:space:]]*//' | sed 's|[[:space:]]// .*||'
}
