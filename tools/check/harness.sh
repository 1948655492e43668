# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Tests of the programs that run tests and record results, in planted trees. No test of them runs.

# planted_harness DIRECTORY...: makes a tree in $tree, with copies of these directories and of
# tools/{env,lib}, and with an environment that is made by doing nothing.
planted_harness() {
	mkdir -p "$tree"/{tools,selftests,Documentation/results}
	cp -r tools/{env,lib} "${@/#/tools/}" "$tree/tools/"
	stub tools/env/make 'exit 0'
	echo all: >"$tree/Makefile"
}

# stub FILE LINE...: replaces a program of $tree by a script of these lines.
stub() {
	mkdir -p "$tree/$(dirname "$1")"
	printf '%s\n' '#!/bin/bash' "${@:2}" >"$tree/$1"
	chmod +x "$tree/$1"
}

# tools/test/kernels fails if tools/test/run ends without a summary, or if no test passed.
rule_test_kernels() {
	local tree status said run expected

	tree=$(mktemp -d)
	planted_harness test
	while IFS='|' read -r run expected; do
		stub tools/test/run "$run"
		status=0
		said=$(XDG_CACHE_HOME=$tree KERNELS='a b' "$tree/tools/test/kernels" mapping 2>&1) || status=$?
		[ "$status, $(tail -n 1 <<<"$said")" = "$expected" ] ||
			echo "tools/test/kernels: expected $expected, after: $run: $status, $said"
	done <<-'END'
		echo 3 passed, 0 failed|0, 6 passed, 0 failed
		echo 3 passed, 2 failed; exit 1|1, 6 passed, 4 failed
		echo 0 passed, 0 failed; exit 1|1, 0 passed, 2 failed
		exit 1|1, 0 passed, 2 failed
		echo "conformance: of 7 requirements: 4 failed, 1 met"; exit 1|1, 0 passed, 2 failed
		echo 0 passed, 0 failed|1, 0 passed, 0 failed
	END
	rm -r "$tree"
}

# tools/mutants/listed ends the tests of a change when a signal ends it.
rule_test_interrupt() {
	local tree listed

	tree=$(mktemp -d)
	planted_harness mutants
	mkdir -p "$tree"/{include,rust,tools/host}
	touch "$tree"/{Kbuild,Documentation/operating.rst,tools/host/a.rs}
	echo 'fn a() {}' >"$tree/rust/a.rs"
	printf '%s\t' H1 rust/a.rs a b sim >"$tree/tools/mutants/changes"
	# shellcheck disable=SC2016 # expanded by the stub
	stub tools/mutants/simulate 'exec 9>"${0%/*}/running"; flock 9; touch "${0%/*}/started"; sleep 60'
	XDG_CACHE_HOME=$tree "$tree/tools/mutants/listed" >/dev/null 2>&1 &
	listed=$!
	for _ in {1..300}; do
		[ ! -e "$tree/tools/mutants/started" ] || break
		sleep 0.1
	done
	[ -e "$tree/tools/mutants/started" ] || echo "the tests of a change did not start"
	kill $listed
	wait $listed
	flock -w 5 "$tree/tools/mutants/running" true || echo "the tests of a change outlive tools/mutants/listed"
	rm -r "$tree"
}
