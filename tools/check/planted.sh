# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Tests of the rules and of the test harness: each must report the faults planted here.

# expect_report RULE TEXT FILE LINE...: runs the rule on a tree that contains only FILE. The rule must
# report FILE once, with TEXT in the message.
expect_report() {
	local rule=$1 text=$2 file=$3 tree found
	shift 3

	tree=$(mktemp -d)
	mkdir -p "$tree/$(dirname "$file")"
	printf '%s\n' "$@" >"$tree/$file"
	found=$(cd "$tree" && "rule_$rule" 2>&1 | grep -c "$(basename "$file"):.*$text")
	rm -r "$tree"
	[ "$found" -eq 1 ] || echo "rule $rule reports $found faults, expected 1, in: $*"
}

rule_test_room_rules() {
	expect_report forbid_unsafe unsafe rust/engine/a.rs 'fn a() { unsafe { b() } }'
	expect_report safety_comments unsafe rust/verbs/a.rs 'fn a() {' '    unsafe { b() }' '}'
	expect_report core_only kernel rust/wire/a.rs 'use kernel::prelude::*;'
	expect_report obligations enqueue rust/server/a.rs 'fn a() { xprt.enqueue(); }'
	expect_report obligations forget rust/client/a.rs 'fn a() { mem::forget(b); }'
}

# A version that changes.rst does not describe, and a changes.rst whose first section is an older one.
rule_test_version() {
	local tree described
	tree=$(mktemp -d)
	mkdir "$tree/include" "$tree/Documentation"
	echo '#define RPCRDMA_MODULE_VERSION "0.10.0"' >"$tree/include/version.h"
	for described in 0.9.9 0.1 '' 0.10.0; do
		printf 'Changes\n=======\n\n%s\n=====\n\n0.1.0\n=====\n' "$described" >"$tree/Documentation/changes.rst"
		(cd "$tree" && rule_version) | grep -q "\"${described:-0.1.0}\"" ||
			[ "$described" = 0.10.0 ] || echo "rule version accepts \"$described\" for 0.10.0"
	done
	(cd "$tree" && rule_version)
	rm -r "$tree"
}

# Forbidden imports and circles: by path, through a re-export, and by a method that one file adds to
# a type of another. A core allows the circle in lib. tools/rooms/run must report all others and the
# faulty core, and nothing else.
rule_test_imports() {
	local tree
	mkdir -p out
	tree=$(mktemp -d out/planted.XXXXXX)
	mkdir -p "$tree"/{rust/{client,engine,lib,server,verbs/mr,verbs/device},tools/rooms}
	{
		sed '/^\[\[core\]\]$/,$d' tools/rooms/rooms.toml
		printf '[[core]]\nfiles = [%s]\nreason = "%s"\n' \
			'"rust/lib/a.rs", "rust/lib/b.rs"' 'one list' '"rust/lib/c.rs"' ''
	} >"$tree/tools/rooms/rooms.toml"
	echo 'use super::b::B; pub(crate) struct A;' >"$tree/rust/lib/a.rs"
	echo 'use super::a::A; pub(crate) struct B;' >"$tree/rust/lib/b.rs"
	cat >"$tree/rust/client/a.rs" <<-'END'
		use crate::{
		    engine::requester::call, //
		    server::{
		        ServerEp, //
		    },
		};
		use kernel::server;
		fn f(x: &super::b::B) {}
	END
	cat >"$tree/rust/client/b.rs" <<-'END'
		use crate::verbs::Mr;
		pub(crate) struct B;
		fn f() { g!(crate::client::a::f()); }
	END
	cat >"$tree/rust/verbs/mod.rs" <<-'END'
		mod mr;
		pub(crate) use mr::frwr::Mr;
		fn f() {}
	END
	cat >"$tree/rust/verbs/mr/frwr.rs" <<-'END'
		pub(in crate::verbs) struct Mr;
		use crate::wire::pad;
	END
	cat >"$tree/rust/verbs/device/pd.rs" <<-'END'
		use crate::verbs::Mr;
	END
	cat >"$tree/rust/server/ep.rs" <<-'END'
		pub(crate) struct Ep;
		fn f(ep: &Ep) { ep.receives(); }
	END
	cat >"$tree/rust/server/receive.rs" <<-'END'
		use super::ep::Ep;
		impl Ep { fn receives(&self) {} }
	END
	echo 'pub(crate) fn pad() {}' >"$tree/rust/wire.rs"
	diff - <(tools/rooms/run --root "$tree" 2>&1 | grep -v "named as part of a core") <<-'END'
		rust/client/a.rs:1: client may not import server (server::ServerEp)
		rust/verbs/device/pd.rs:1: verbs/device may not import verbs/mr (verbs::Mr)
		rust/verbs/mr/frwr.rs:2: verbs/mr may not import wire (wire::pad)
		2 files import each other:
		  rust/client/a.rs:8: imports client::b::B of rust/client/b.rs
		  rust/client/b.rs:3: imports client::a::f of rust/client/a.rs
		2 files import each other:
		  rust/server/ep.rs:2: calls Ep::receives of rust/server/receive.rs
		  rust/server/receive.rs:1: imports server::ep::Ep of rust/server/ep.rs
		a [[core]] has no reason: {"rust/lib/c.rs"}
		rust/lib/c.rs: is in a [[core]], but in no circle
	END
	rm -r "$tree"
}

# Each record has one fault. tools/conformance/run must report all of them and nothing else.
rule_test_conformance() {
	local tree
	mkdir -p out
	tree=$(mktemp -d out/planted.XXXXXX)
	mkdir -p "$tree"/{rust/wire,selftests,tools/{host,probe,test},Documentation/{conformance,bug-classes}}
	cat >"$tree/rust/wire/a.rs" <<-'END'
		//! C: rpc_rdma.c
		//! C: rpc_rdma.c, here()
		// fn absent() {}
		fn here(buf: *const u8) -> &'static str { "fn absent() {}" }
	END
	cat >"$tree/tools/host/t.rs" <<-'END'
		#[test]
		fn tested() {}
		fn absent() {}
	END
	cat >"$tree/selftests/s.sh" <<-'END'
		run() {
		}
		not_run() {
		}
		long_run() {
		}
		unplanned() {
		}
		ktap_run "run 4.2" ${LONG:+long_run} unplanned
	END
	printf '%s\n' 'static void t_not_run(struct conn *c)' 'static const struct test tests[] = {' \
		$'\t{ "R1-1-1 R1-1-6", "a", t_run },' $'\t{ "R1-9-9", "b", t_other },' '};' \
		'const struct group group_p = {' >"$tree/tools/probe/p.c"
	printf '%s\n' s u >"$tree/selftests/suites"
	printf '%s\t%s\t%s\n' host m::tested '' host m::gone '' s 'run 4.2' '' probe/p 'a (R1-1-1 R1-1-6)' '' \
		s 'long run' 'with LONG=1' | sed 's/\t$//' >"$tree/tools/test/plan"
	cat >"$tree/Documentation/from-xprtrdma.csv" <<-'END'
		c_file,c_name,file,item,note
		rpc_rdma.c,nothing,rust/wire/a.rs,here,
		rpc_rdma.c,rpcrdma_marshal_req,rust/wire/a.rs,absent,
		rpc_rdma.c,rpcrdma_reply_handler,,,
	END
	{
		echo 'document = "R1"'
		while IFS='|' read -r id state code shown note; do
			printf '[[requirement]]\nforce = "MUST"\nend = "both"\nasks = ""\nid = "R1-1-%s"\n' "$id"
			printf 'state = "%s"\nwhere = [%s]\nshown = [%s]\n' "$state" "$code" "$shown"
			[ -z "$note" ] || printf 'note = "%s"\n' "$note"
		done <<-'END'
			1|met|"rust/wire/a.rs:here"|"tested", "selftests/s.sh:run", "tools/probe/p.c:t_run"|
			2|met|"rust/wire/a.rs:absent"|"tested"|
			3|met|"rust/wire/b.rs"|"absent"|
			4|met|"rust/wire/a.rs:here"|"selftests/s.sh:not_run", "tools/probe/p.c:t_not_run"|
			6|met|"rust/wire/a.rs:here"|"tested"|
			7|met||"rust/wire/a.rs:here"|
			8|met|"rust/wire/a.rs:here"||As R1-1-1, R1-1-5, ``nowhere``, ``rust/wire/a.rs`` (``absent``).
			9|n/a|||
			10|met|"rust/wire/a.rs:here"|"selftests/s.sh:long_run", "tools/probe/p.c:t_other"|
			11|partly|"rust/wire/a.rs:here"|"tested"|
		END
	} >"$tree/Documentation/conformance/r1.toml"
	printf '%s\n' 'class = "A"' 'title = ""' '[[entry]]' 'id = "A1"' 'failure = "As A2."' \
		'state = "type"' >"$tree/Documentation/bug-classes/a.toml"
	diff - <(tools/conformance/run --root "$tree" 2>&1 | sed 's|Documentation/||') <<-'END'
		met: 8, partly: 1, reading: 0, not met: 0, n/a: 1 of 10 requirements
		test: 0, elsewhere: 0, type: 1, none: 0, n/a: 0 of 1 bug classes
		3 functions and structures of the C module
		bug-classes/a.toml: A1: no code is named
		bug-classes/a.toml: A1: there is no A2
		bug-classes/a.toml: A: no entry has a test
		conformance/r1.toml: R1-1-10: make test runs no test of it
		conformance/r1.toml: R1-1-10: tools/test/plan has no test for tools/probe/p.c:t_other
		conformance/r1.toml: R1-1-11: no reason is given
		conformance/r1.toml: R1-1-2: there is no item absent in rust/wire/a.rs
		conformance/r1.toml: R1-1-3: there is no rust/wire/b.rs
		conformance/r1.toml: R1-1-3: there is no test absent
		conformance/r1.toml: R1-1-4: there is no case not_run in selftests/s.sh
		conformance/r1.toml: R1-1-4: there is no case t_not_run in tools/probe/p.c
		conformance/r1.toml: R1-1-6: does not name tools/probe/p.c
		conformance/r1.toml: R1-1-6: the next number is 5
		conformance/r1.toml: R1-1-7: met, but no code is named
		conformance/r1.toml: R1-1-7: rust/wire/a.rs is no test
		conformance/r1.toml: R1-1-8: met, but no test is named
		conformance/r1.toml: R1-1-8: nowhere is not known
		conformance/r1.toml: R1-1-8: there is no R1-1-5
		conformance/r1.toml: R1-1-8: there is no item absent in rust/wire/a.rs
		conformance/r1.toml: R1-1-9: no reason is given
		from-xprtrdma.csv: rpc_rdma.c, nothing: not in rpc_rdma.c
		from-xprtrdma.csv: rpc_rdma.c, rpcrdma_marshal_req: there is no item absent in rust/wire/a.rs
		from-xprtrdma.csv: rpc_rdma.c, rpcrdma_reply_handler: has neither a file nor a reason
		rust/wire/a.rs: C: rpc_rdma.c: from-xprtrdma.csv has no row for here with this file
		rust/wire/a.rs: C: rpc_rdma.c: expected the form "C: frwr_ops.c, frwr_map(), struct rpcrdma_mr"
		tools/probe/p.c: R1-9-9: there is no such requirement
		tools/test/plan: has no line for selftests/s.sh: unplanned
		tools/test/plan: has no line for tools/probe/p.c: b
		tools/test/plan: has no line for u: all
		tools/test/plan: host: there is no m::gone
	END
	rm -r "$tree"
}

# A run in which a case of the probe, a group, and a case of a selftest are gone, a host test is
# ignored, a selftest skips itself, one program skips itself as a whole, another is not run, and a
# test is new. A suite that started again has the results of its last start and earlier failures.
rule_test_plan() {
	local tree

	mkdir -p out
	tree=$(mktemp -d out/planted.XXXXXX)
	mkdir -p "$tree"/{rust,tools/{probe,host,test},Documentation/{conformance,bug-classes},out}
	printf '%s\n' 'static const struct test tests[] = {' $'\t{ "R1-1-1", "a", t_a },' \
		$'\t{ "-", "b", t_b },' '};' 'const struct group group_p = {' >"$tree/tools/probe/p.c"
	while IFS='|' read -r suite tests; do
		tr '|' '\n' <<<"$tests" | sed "s|^|$suite\t|; s|+|\t|"
	done >"$tree/tools/test/plan" <<-'END'
		host|m::good|m::ignored
		probe/p|a (R1-1-1)|b (-)
		probe/q|c (-)
		s|run 4.2|run 3|may skip+skip: no device|again
		t|all|more
		u|all
	END
	cat >"$tree/Documentation/conformance/r1.toml" <<-'END'
		document = "R1"
	END
	while IFS='|' read -r id state shown; do
		printf '[[requirement]]\nforce = "MUST"\nend = "both"\nasks = ""\nid = "R1-1-%s"\n' "$id"
		printf 'state = "%s"\nshown = [%s]\n' "$state" "$shown"
	done >>"$tree/Documentation/conformance/r1.toml" <<-'END'
		1|met|"good"
		2|met|"good", "ignored"
		3|partly|"selftests/s.sh:run"
		4|met|"selftests/s.sh:again", "selftests/s.sh:may_skip"
		5|met|"selftests/t.sh"
		6|met|"selftests/u.sh:all"
		7|reading|"ignored"
	END
	printf '%s\n' 'class = "A"' 'title = ""' '[[entry]]' 'id = "A1"' 'failure = ""' \
		'state = "test"' 'shown = ["tools/probe/p.c:t_b"]' >"$tree/Documentation/bug-classes/a.toml"
	printf '%s\n' 'ok 1 - m::good' 'ok 2 - m::ignored # SKIP ignored' 1..2 >"$tree/out/host"
	printf '%s\n' '# group p, kernel 7.2.0, x' 1..1 'ok 1 - b (-)' >"$tree/out/probe"
	printf '%s\n' 1..4 'ok 1 - run 4.2' 'retry: the emulator failed' 1..4 'ok 1 - run 4.2 # SKIP so' \
		'ok 2 - may skip # SKIP no device' 'ok 3 - again' 'ok 4 - new' >"$tree/out/s"
	echo '1..0 # SKIP no device' >"$tree/out/t"
	diff - <(tools/conformance/run --root "$tree" --judge "$tree/out" host probe s t 2>&1) <<-'END'
		1..4
		# probe/p: has not run: a (R1-1-1)
		# probe/q: has not run: c (-)
		# s: has not run: run 3
		# s: is not in the plan: new
		# t: has not run: all
		# t: has not run: more
		not ok 1 - planned tests ran, and no others
		# host: m::ignored: ignored
		# s: run 4.2: so
		not ok 2 - no test is skipped without a planned reason
		# not judged: R1-1-6
		# of 7 requirements: 4 failed, 1 met, 1 not judged, 1 reading
		# R1-1-1: probe/p: a (R1-1-1) has not run
		# R1-1-2: host: m::ignored has not passed
		# R1-1-3: s: run 3 has not run
		# R1-1-3: s: run 4.2 has not passed
		# R1-1-5: t: all has not run
		# R1-1-5: t: more has not run
		not ok 3 - requirements: the tests that show them passed
		# of 1 bug classes: 1 test
		ok 4 - bug classes: the tests that show them passed
	END
	tools/conformance/run --root "$tree" --judge "$tree/out" all 2>&1 | grep -qx '# u: has not run: all' ||
		echo "a suite of the plan that has not run is not reported"
	rm -r "$tree"
}

# verdicts TEST...: prints the result lines of a selftest program that runs these tests, without a
# guest and without a test bed.
verdicts() {
	# shellcheck disable=SC2016 # expanded by the inner shell
	bash -c '
		. selftests/lib/ktap.sh
		log_mark() { :; }
		log_end() { :; }
		log_is_clean() { :; }
		loss_trace_on() { :; }
		loss_trace_print() { :; }
		loss_trace_off() { :; }
		module_kind() { echo rust; }
		module_describe() { :; }
		test_cleanup() { ls /nowhere/at/all; }
		passes() { :; }
		command_ends_with() { bash -c "exit $1"; }
		cannot_do() { skip "for a reason"; }
		fails() { fail "for a reason"; }
		changes_the_machine() { need_guest; }
		of_the_c_module() { xfail_on_c "for a reason"; }
		ktap_run "$@"' verdicts "$@" 2>&1 | grep -E '^(not )?ok'
}

# A test that returns any status but 0 has failed, unless it called skip or xfail_on_c.
rule_test_ktap() {
	diff - <(verdicts passes "command_ends_with 1" "command_ends_with 2" \
		"command_ends_with 4" cannot_do fails of_the_c_module changes_the_machine) <<-'END'
		ok 1 - passes
		not ok 2 - command ends with 1
		not ok 3 - command ends with 2
		not ok 4 - command ends with 4
		ok 5 - cannot do # SKIP for a reason
		not ok 6 - fails
		not ok 7 - of the c module
		ok 8 - changes the machine # SKIP changes the configuration of the machine: needs a guest
	END
}

# Harnesses reject unknown names of cases and groups at once.
rule_test_unknown_names() {
	local command said

	while read -r command; do
		# shellcheck disable=SC2086 # a command and its arguments
		said=$(timeout 60 $command 2>&1)
		[ $? = 1 ] && [[ $said == 'error: there is no "'* ]] || echo "$command: $said"
	done <<-'END'
		tools/check/run unknown
		tools/check/run spdx unknown
		tools/probe/run unknown
		tools/probe/run headers unknown
		tools/probe/run --fuzz 1 fuzz_server
		tools/test/hundred unknown
		tools/test/hundred --rdma siw loads unknown
	END
}
