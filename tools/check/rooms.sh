# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The rules of the rooms under rust/: what each may use, and where `unsafe` is.

# The attribute that forbids it is the only place with the word.
rule_no_unsafe_above() {
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

# The code of a room, in which what a grouped import names is a path of its own.
paths() {
	code "$1" | awk '
		{ text = $0; sub(/^[^:]+:[0-9]+:/, "", text); match(text, /^ */) }
		text ~ /use crate::\{/ { group = 1; indent = RLENGTH }
		group && RLENGTH == indent && text ~ /^ *\};/ { group = 0 }
		group && RLENGTH == indent + 4 && text ~ /^ *[a-z]/ { sub(/: +/, "&crate::") }
		{ print }'
}

# room ROOM ALLOWED...: other rooms that its code names.
arrows_of() {
	local room=$1 other
	shift
	local where=rust/$room
	[ -e "$where" ] || where+=.rs
	[ -e "$where" ] || return 0
	for other in wire engine bindings lib trace sysctl verbs sunrpc client server; do
		[ "$other" != "$room" ] || continue
		case " $* " in *" $other "*) continue ;; esac
		paths "$where" | grep -E "\\bcrate::$other\\b|\\bsuper::super::$other\\b" |
			sed "s|\$|    <- $room does not stand on $other|"
	done
}

rule_arrows() {
	arrows_of wire
	arrows_of engine wire
	arrows_of bindings
	arrows_of lib bindings
	arrows_of trace bindings lib
	arrows_of sysctl bindings lib
	arrows_of verbs bindings lib trace
	arrows_of sunrpc bindings lib trace
	arrows_of client engine wire verbs sunrpc lib trace sysctl
	arrows_of server engine wire verbs sunrpc lib trace sysctl
}

# wire and engine compile without a kernel.
rule_core_only() {
	code rust/wire rust/engine | grep -E '\b(kernel|pin_init|macros|std|alloc)::'
}

# Lines of code with their place, comments left out.
code() {
	grep -rn --include='*.rs' '' "$@" | grep -vE '^[^:]+:[0-9]+:[[:space:]]*//' | sed 's|[[:space:]]// .*||'
}
