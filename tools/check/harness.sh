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

# planted_commit: makes a repository of $tree, or commits what has changed.
planted_commit() {
	printf '%s\n' /out/ /rpcrdma/ >"$tree/.gitignore"
	git -C "$tree" init -q
	git -C "$tree" add -A
	git -C "$tree" -c user.name=a -c user.email=b commit -q -m a
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

# signed PIN SIGN-FILE-LINE...: builds a package in $tree up to the step behind the signature, with these
# lines in place of sign-file, and names the files that hold the key or the PIN then.
signed() {
	stub "${kbuild#"$tree"/}/scripts/sign-file" "${@:2}"
	XDG_CACHE_HOME=$tree TMPDIR=$tree/tmp KBUILD_SIGN_PIN=$1 MODULE_SIGN_KEY=$tree/key \
		MODULE_SIGN_CERT=$tree/key.der setsid -w "$tree/tools/package/build" --inner "$tree/rpcrdma.ko" \
		>"$tree/said" 2>&1 && echo "the package is built without the command nfsrdma"
	grep -rlE 'of the key' "$tree/tmp" "$tree/out"
}

# tools/package/build signs the module, and leaves no copy of the key or its PIN if that fails.
rule_test_signature() (
	tree=$(mktemp -d)
	planted_harness package
	mkdir -p "$tree/tmp" "$tree/include"
	echo '#define RPCRDMA_MODULE_VERSION "0.1"' >"$tree/include/version.h"
	plant "$tree/rpcrdma.ko"
	kbuild=$(XDG_CACHE_HOME=$tree bash -c '. tools/env/cache.sh; toolchain_path')/usr/lib/linux-kbuild-0
	echo 'contents of the key' >"$tree/key"
	echo certificate >"$tree/key.der"
	# shellcheck disable=SC2016 # expanded by the stub
	stub tools/env/enter 'cd "$2"; exec "${@:3}"'
	# shellcheck disable=SC2016 # expanded by the stub
	signed 'PIN of the key' 'cat "$2" "$3" >signature; echo "$KBUILD_SIGN_PIN" >>signature' \
		'tr -d "\n" <signature | tr " " _ >>"$4"'
	grep -q 'contents_of_the_keycertificatePIN_of_the_key$' "$tree/out/package/source/rpcrdma.ko" ||
		echo "the module is not signed: $(cat "$tree/said")"
	signed 'PIN of the key' 'exit 1'
	signed 'PIN of the key' 'kill -INT 0; sleep 10'
	rm -r "$tree"
)

# The outputs that tools/test/run judges are those of this module, on this commit, with the default
# length, and whole.
rule_test_judged() {
	local tree run

	tree=$(mktemp -d)
	planted_harness test
	stub tools/test/prepare 'exit 0'
	# shellcheck disable=SC2016 # expanded by the stub
	stub tools/test/suite 'echo 1..1' 'echo "ok 1 - a"' '[ "$1" != stopped ] || kill -KILL 0'
	# shellcheck disable=SC2016 # expanded by the stub
	stub tools/conformance/run 'echo "$*" >out/judged' 'echo 1..1' 'echo "ok 1 - a"'
	planted_commit
	mkdir -p "$tree/out/test"
	printf '%s\n' '# commit 0123456789ab on 2026-01-02' '# ended after 3 s' >"$tree/out/test/older"
	while read -r run; do
		XDG_CACHE_HOME=$tree setsid -w bash -c "cd $tree; $run" >"$tree/out/said" 2>&1
	done <<-'END'
		tools/test/run one
		tools/test/run --module c of_c
		tools/test/run --module out/changed/rpcrdma.ko of_changed
		LONG=1 tools/test/run of_long
		LOADED=1 tools/test/run of_loaded
		BED_BOUNCE=1 tools/test/run of_bounce
		tools/test/run stopped
		tools/test/run two
	END
	diff "$tree/out/judged" - <<<'--judge out/test one two' || cat "$tree/out/said"
	rm -r "$tree"
}

# refuses STATUS COMMIT: tools/results/record ends with STATUS for rows of COMMIT.
refuses() {
	local status=0

	printf '%s\n' column row | "$tree/tools/results/record" rows planted --commit "$2" >"$tree/out/said" 2>&1 ||
		status=$?
	[ "$status" = "$1" ] || echo "tools/results/record: $status, not $1, for $2: $(cat "$tree/out/said")"
	[ "$1" = 0 ] || grep -q '^error: nothing is recorded: ' "$tree/out/said" ||
		echo "no reason is given: $(cat "$tree/out/said")"
}

# Results are recorded only if the sources are those with which the run began. tools/test/long takes
# those with which each part began.
rule_test_unchanged() {
	local tree commit

	tree=$(mktemp -d)
	planted_harness results test
	mkdir "$tree/out"
	stub tools/test/field 'echo 1 >>Makefile; git add Makefile' \
		'git -c user.name=a -c user.email=b commit -q -m b; echo 1 passed, 0 failed'
	stub tools/test/debug 'echo 2 passed, 0 failed'
	planted_commit
	commit=$(git -C "$tree" rev-parse --short=12 HEAD)
	refuses 0 "$commit"
	refuses 1 0123456789ab
	echo >"$tree/Documentation/new.rst"
	refuses 0 "$commit"
	echo >"$tree/selftests/new"
	refuses 1 "$commit"
	refuses 1 "$commit, dirty"
	XDG_CACHE_HOME=$tree "$tree/tools/test/long" --record debug >"$tree/out/said" 2>&1 &&
		echo "tools/test/long records changed sources: $(cat "$tree/out/said")"
	planted_commit
	XDG_CACHE_HOME=$tree "$tree/tools/test/long" --record field debug 2>&1 | tail -n 1 |
		diff - <(echo '1 passed, 1 failed')
	commit=$(git -C "$tree" rev-parse --short=12 HEAD)
	sed -n 's/^# commit: /= /p; /^[a-z]/p' "$tree/Documentation/results/long.tsv" | cut -f 1,2,4 |
		tr '\t' '|' | diff - <(printf '%s\n' "= $commit" 'part|result|last line' \
		'debug|passed|2 passed, 0 failed')
	rm -r "$tree"
}
