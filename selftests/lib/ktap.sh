# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# KTAP: a plan, then one line per test. A test is a shell command (most often
# a function of the file with its arguments) that runs in a subshell of its
# own under "set -e". It passes by returning 0; skip, xfail and fail end it.

KSFT_FAIL=1
KSFT_XFAIL=2
KSFT_SKIP=4

# How many times as long as on a stock kernel what is timed may take, where the
# kernel watches itself.
: "${PACE:=1}"

# Seconds one test may take before its processes are shown and killed. They end what
# hangs, and are many times what a test takes on a busy machine.
: "${TEST_TIMEOUT:=$((600 * PACE))}"

# Seconds for which I/O may stand still, however much longer a suite lets its tests take.
# shellcheck disable=SC2034 # used by load.sh and mount.sh
IO_TIMEOUT=$((TEST_TIMEOUT / 3))

# How many times fewer transfers are made where PACE is more than 1, and many only make
# numbers round: each takes many times as long.
# shellcheck disable=SC2034 # used by the tests
PACE_CUBED=$((PACE * PACE * PACE))

ktap_failed=0
ktap_number=0

# The ends of a test, each with its reason.
fail()  { echo "FAIL: $*" >&2; exit "$KSFT_FAIL"; }
skip()  { echo "$*" >"$ktap_dir/reason"; exit "$KSFT_SKIP"; }

# A test that does something $2 times has done so $1 times. Every tenth time that is said at
# once: what else it says is kept until it ends, which may be hours later.
ktap_progress() {
	[ $(($1 % 10)) -ne 0 ] || echo "# reached $1 of $2" >&"$ktap_live"
}

# A defect that the C module is known to have and ours must not have.
xfail_on_c() {
	[ "$(module_kind)" = c ] || fail "$*"
	echo "$*" >"$ktap_dir/reason"
	exit "$KSFT_XFAIL"
}

ktap_skip_all() {
	echo "KTAP version 1"
	echo "1..0 # SKIP $*"
	exit "$KSFT_SKIP"
}

ktap_bail_out() {
	echo "Bail out! $*"
	exit "$KSFT_FAIL"
}

# Ends the test whose shell is $1 when it takes too long.
ktap_watchdog() {
	local shell=$1

	exec </dev/null >/dev/null 2>&1
	# Killed with the test that it is for: then there is nothing to watch.
	sleep "$TEST_TIMEOUT" || exit
	touch "$ktap_dir/timeout"
	log_blocked_tasks
	pkill -KILL -P "$shell"
	umount_forced
	kill -KILL "$shell"
}

# A test's own end counts, and not that of what is cleaned up behind it.
ktap_cleanup() {
	local status=$? left

	set +e
	# A test that has failed may have left somebody at work, who would keep what is cleaned up.
	left=$(jobs -p)
	# shellcheck disable=SC2086 # numbers
	[ -z "$left" ] || kill -KILL $left 2>/dev/null
	test_cleanup
	exit "$status"
}

ktap_run_one() {
	local rc=0 name=${1//_/ } verdict directive="" watchdog test_shell
	local begin=$EPOCHREALTIME

	ktap_number=$((ktap_number + 1))
	rm -f "$ktap_dir/reason" "$ktap_dir/timeout"
	log_mark "$name"

	# shellcheck disable=SC2086 # a test's arguments are words
	( set -e; trap ktap_cleanup EXIT; $1 ) >"$ktap_dir/output" 2>&1 </dev/null &
	test_shell=$!
	ktap_watchdog "$test_shell" &
	watchdog=$!
	wait "$test_shell" 2>/dev/null || rc=$?
	pkill -KILL -P "$watchdog"
	kill -KILL "$watchdog" 2>/dev/null
	wait "$watchdog" 2>/dev/null

	# Commands end with such numbers, too: only who gives a reason has skipped a test.
	if [ "$rc" -gt "$KSFT_FAIL" ] && [ ! -e "$ktap_dir/reason" ]; then
		echo "FAIL: ended with $rc" >>"$ktap_dir/output"
		rc=$KSFT_FAIL
	fi
	if [ -e "$ktap_dir/timeout" ]; then
		rc=$KSFT_FAIL
		echo "FAIL: still running after $TEST_TIMEOUT s" >>"$ktap_dir/output"
	fi
	if ! log_is_clean >>"$ktap_dir/output"; then
		rc=$KSFT_FAIL
		echo "FAIL: the kernel log is not clean" >>"$ktap_dir/output"
	fi
	case $rc in
	0)		verdict="ok" ;;
	"$KSFT_SKIP")	verdict="ok"; directive=" # SKIP $(cat "$ktap_dir/reason")" ;;
	"$KSFT_XFAIL")	verdict="ok"; directive=" # XFAIL $(cat "$ktap_dir/reason")" ;;
	*)		verdict="not ok"; ktap_failed=$((ktap_failed + 1)) ;;
	esac
	sed 's/^/# /' "$ktap_dir/output"
	echo "# took $(((${EPOCHREALTIME/./} - ${begin/./}) / 1000)) ms"
	echo "$verdict $ktap_number - $name$directive"
}

# Runs each argument as one test and ends the program with the verdict.
ktap_run() {
	local each

	ktap_dir=$(mktemp -d /tmp/ktap.XXXXXX)
	exec {ktap_live}>&1
	echo "KTAP version 1"
	echo "# rpcrdma: $(module_describe)"
	echo "1..$#"
	for each; do
		ktap_run_one "$each"
	done
	rm -rf "$ktap_dir"
	[ "$ktap_failed" -eq 0 ]
	exit
}
