# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# KTAP output: a plan, then one line per test. A test is a shell command, usually a function of
# the test program with its arguments. It runs in its own subshell under "set -e" and passes if it
# returns 0. skip, xfail_on_c and fail end it.

KSFT_FAIL=1
KSFT_XFAIL=2
KSFT_SKIP=4
KTAP_AGAIN=5

# How often a test is run whose connection rxe has lost.
KTAP_ATTEMPTS=3

# Factor by which a debug kernel (KASAN, lockdep) may be slower than a stock kernel; scales
# timeouts.
: "${PACE:=1}"

# Seconds until a test's blocked tasks are logged and its processes killed. This only ends hung
# tests: it is many times the duration of any test on a busy machine.
: "${TEST_TIMEOUT:=$((600 * PACE))}"

# Seconds for which I/O may make no progress, even where a suite raises TEST_TIMEOUT.
# shellcheck disable=SC2034 # used by load.sh and mount.sh
IO_TIMEOUT=$((TEST_TIMEOUT / 3))

# Divisor for the number of transfers: each one takes many times as long on a slow kernel, and no
# test depends on the number.
# shellcheck disable=SC2034 # used by the tests
PACE_CUBED=$((PACE * PACE * PACE))

ktap_failed=0
ktap_number=0

# End the test, with a reason.
fail()  { echo "FAIL: $*" >&2; exit "$KSFT_FAIL"; }
skip()  { echo "$*" >"$ktap_dir/reason"; exit "$KSFT_SKIP"; }

# ktap_progress DONE TOTAL: reports every tenth iteration at once. All other output of a test is
# printed when the test ends, which may be hours later.
ktap_progress() {
	[ $(($1 % 10)) -ne 0 ] || echo "# reached $1 of $2" >&"$ktap_live"
}

# wait_for WHAT COMMAND...: waits until the command succeeds. WHAT says in an error what is wrong.
wait_for() {
	local what=$1 deadline=$((SECONDS + IO_TIMEOUT))
	shift

	until "$@"; do
		[ "$SECONDS" -lt "$deadline" ] || fail "$what"
		sleep 0.5
	done
}

# Ends the test for a known defect of the C module. In this module, the defect is a failure.
xfail_on_c() {
	[ "$(module_kind)" = c ] || fail "$*"
	echo "$*" >"$ktap_dir/reason"
	exit "$KSFT_XFAIL"
}

# connection_lost VERDICT REASON: ends the test, whose connection was lost, with "VERDICT REASON".
# But if rxe has retransmitted after a timeout meanwhile, which may end the connection
# (Documentation/contributing.rst), the loss proves nothing, and the test is run again, unless this
# was the last attempt.
connection_lost() {
	local timeouts

	timeouts=$(rxe_timeouts)
	if [ "$ktap_attempt" -lt "$KTAP_ATTEMPTS" ] && [ "$timeouts" -ne "$rxe_timeouts_before" ]; then
		echo "$2, and rxe had timeouts" >&2
		touch "$ktap_dir/reason"
		exit "$KTAP_AGAIN"
	fi
	"$@"
}

# Succeeds in a guest of tools/vm, which is discarded after the tests.
in_guest() { [ -e /vm/environment ]; }

# For tests that leave the machine with another configuration.
need_guest() { in_guest || skip "changes the configuration of the machine: needs a guest"; }

ktap_skip_all() {
	echo "KTAP version 1"
	echo "1..0 # SKIP $*"
	exit "$KSFT_SKIP"
}

ktap_bail_out() {
	echo "Bail out! $*"
	exit "$KSFT_FAIL"
}

# ktap_watchdog PID: kills the test whose shell is PID after TEST_TIMEOUT seconds.
ktap_watchdog() {
	local shell=$1

	exec </dev/null >/dev/null 2>&1
	# sleep is killed when the test ends in time.
	sleep "$TEST_TIMEOUT" || exit
	touch "$ktap_dir/timeout"
	log_blocked_tasks
	pkill -KILL -P "$shell"
	umount_forced
	kill -KILL "$shell"
}

# Preserves the exit status of the test: a failing cleanup does not fail it.
ktap_cleanup() {
	local status=$? left

	set +e
	# A failed test may leave background jobs, which would keep files and mounts busy.
	left=$(jobs -p)
	# shellcheck disable=SC2086 # numbers
	[ -z "$left" ] || kill -KILL $left 2>/dev/null
	test_cleanup
	exit "$status"
}

# Ends the program after a signal: first the test, which undoes what it has done, and the watchdog. A
# second signal ends the program at once. Either way the program's EXIT trap destroys the bed.
ktap_interrupted() {
	local each

	trap - HUP INT TERM
	echo "Bail out! interrupted"
	# Bash ignores SIGINT in background processes. While stopped, they start no new processes.
	for each in $(jobs -pr); do
		kill -STOP "$each"
		pkill -KILL -P "$each"
		kill -TERM "$each"
		kill -CONT "$each"
	done
	wait
	sed 's/^/# /' "$ktap_dir/output"
	loss_trace_off
	rm -rf "$ktap_dir"
	exit "$KSFT_FAIL"
} 2>/dev/null

# ktap_attempt COMMAND: runs the test once. Sets rc to its exit status.
ktap_attempt() {
	local watchdog test_shell

	rc=0
	rm -f "$ktap_dir/reason" "$ktap_dir/timeout"
	loss_trace_on
	rxe_timeouts_before=$(rxe_timeouts)

	# shellcheck disable=SC2086 # a test's arguments are words
	( set -e; trap ktap_cleanup EXIT; $1 ) >"$ktap_dir/output" 2>&1 </dev/null &
	test_shell=$!
	ktap_watchdog "$test_shell" &
	watchdog=$!
	wait "$test_shell" 2>/dev/null || rc=$?
	pkill -KILL -P "$watchdog"
	kill -KILL "$watchdog" 2>/dev/null
	wait "$watchdog" 2>/dev/null
}

ktap_run_one() {
	local rc=0 name=${1//_/ } verdict directive="" LOG_EXPECTED=$LOG_EXPECTED
	local begin=$EPOCHREALTIME

	ktap_number=$((ktap_number + 1))
	log_mark "$name"
	for ((ktap_attempt = 1; ktap_attempt <= KTAP_ATTEMPTS; ktap_attempt++)); do
		ktap_attempt "$1"
		[ "$rc" -eq "$KTAP_AGAIN" ] && [ -e "$ktap_dir/reason" ] || break
		sed 's/^/# /' "$ktap_dir/output"
		echo "# trying again"
		# rxe reports some of the connections that it has lost.
		LOG_EXPECTED+=$RXE_GAVE_UP
	done

	# Other commands may also exit with 2 or 4: skip and xfail_on_c leave a reason as well.
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
	log_end
	case $rc in
	0)		verdict="ok" ;;
	"$KSFT_SKIP")	verdict="ok"; directive=" # SKIP $(cat "$ktap_dir/reason")" ;;
	"$KSFT_XFAIL")	verdict="ok"; directive=" # XFAIL $(cat "$ktap_dir/reason")" ;;
	*)		verdict="not ok"; ktap_failed=$((ktap_failed + 1)) ;;
	esac
	[ "$verdict" = ok ] || loss_trace_print >>"$ktap_dir/output"
	sed 's/^/# /' "$ktap_dir/output"
	echo "# took $(((${EPOCHREALTIME/./} - ${begin/./}) / 1000)) ms"
	echo "$verdict $ktap_number - $name$directive"
}

# Prints the functions that the program names after bed_up, which are those of its tests.
ktap_tests() {
	comm -12 <(compgen -A function | grep -v '^ktap_' | sort) \
		<(sed '1,/^bed_up$/d' "${0##*/}" | grep -oE '[A-Za-z0-9_]+' | sort -u)
} 2>/dev/null

# Runs each argument as one test and ends the program with the verdict. Each program passes the
# tests that its user has named.
ktap_run() {
	local each

	for each; do
		declare -F "${each%% *}" >/dev/null ||
			ktap_bail_out "there is no test \"${each%% *}\"; the tests are: $(ktap_tests | xargs)"
	done
	ktap_dir=$(mktemp -d /tmp/ktap.XXXXXX)
	exec {ktap_live}>&1
	trap ktap_interrupted HUP INT TERM
	echo "KTAP version 1"
	echo "# rpcrdma: $(module_describe)"
	echo "1..$#"
	for each; do
		ktap_run_one "$each"
	done
	trap - HUP INT TERM
	loss_trace_off
	rm -rf "$ktap_dir"
	[ "$ktap_failed" -eq 0 ]
	exit
}
