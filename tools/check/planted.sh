# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Who checks the checkers: faults planted for them, which each has to find.

# planted RULE FILE LINE...: a tree with nothing but this file. One place is found, or $FINDS.
planted() {
	local rule=$1 file=$2 tree found
	shift 2

	tree=$(mktemp -d)
	mkdir -p "$tree/$(dirname "$file")"
	printf '%s\n' "$@" >"$tree/$file"
	found=$(cd "$tree" && "rule_$rule" 2>&1 | grep -c "$(basename "$file"):.*$PLANTED")
	rm -r "$tree"
	[ "$found" -eq "${FINDS:-1}" ] || echo "rule_$rule finds $found places in: $*"
}

rule_rooms_notice() {
	local PLANTED

	PLANTED=unsafe
	planted no_unsafe_above rust/engine/a.rs 'fn a() { unsafe { b() } }'
	planted safety_comments rust/verbs/a.rs 'fn a() {' '    unsafe { b() }' '}'
	PLANTED=kernel
	planted core_only rust/wire/a.rs 'use kernel::prelude::*;'
	PLANTED=server
	planted arrows rust/client/a.rs 'use crate::server::Channel;'
	planted arrows rust/client/a.rs 'use crate::{' '    engine::call,' '    server::{' \
		'        Channel, //' '    }, //' '};'
	planted arrows rust/verbs/a.rs 'mod a {' '    use crate::{' '        bindings,' \
		'        server::Channel, //' '    };' '}'
	# Not what another import has of that name.
	FINDS=0 planted arrows rust/client/a.rs 'use kernel::{' '    server, //' '};'
}

# A program of tests, with these for its own, as it would run in a guest.
verdicts() {
	# shellcheck disable=SC2016 # that shell expands them
	bash -c '
		. selftests/lib/ktap.sh
		log_mark() { :; }
		log_is_clean() { :; }
		module_kind() { echo rust; }
		module_describe() { :; }
		test_cleanup() { ls /nowhere/at/all; }
		passes() { :; }
		command_ends_with() { bash -c "exit $1"; }
		cannot_do() { skip "for a reason"; }
		fails() { fail "for a reason"; }
		of_the_c_module() { xfail_on_c "for a reason"; }
		ktap_run "$@"' verdicts "$@" 2>&1 | grep -E '^(not )?ok'
}

# A test has failed however it ends, unless it says otherwise.
rule_tests_fail() {
	diff - <(verdicts passes "command_ends_with 1" "command_ends_with 2" \
		"command_ends_with 4" cannot_do fails of_the_c_module) <<-'END'
		ok 1 - passes
		not ok 2 - command ends with 1
		not ok 3 - command ends with 2
		not ok 4 - command ends with 4
		ok 5 - cannot do # SKIP for a reason
		not ok 6 - fails
		not ok 7 - of the c module
	END
}

# What is called by a name that is not there does not run something else, and says so at once.
rule_names_are_known() {
	local command said

	while read -r command; do
		# shellcheck disable=SC2086 # a command and its words
		said=$(timeout 60 $command 2>&1)
		[ $? = 1 ] && [[ $said == 'error: there is no "'* ]] || echo "$command: $said"
	done <<-'END'
		tools/probe/run nobody
		tools/probe/run headers nobody
		tools/probe/run --fuzz 1 fuzz_server
		tools/test/hundred nobody
		tools/test/hundred --rdma siw loads nobody
	END
}
