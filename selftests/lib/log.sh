# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Checks the kernel log. A test fails if the kernel logs anything at level warning or above while
# the test runs, except for known messages.

log_start=

log_reports=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/known_reports.awk

# Additional patterns for log_expected, set by test programs that provoke such messages.
LOG_EXPECTED=

# rxe reports a connection that exceeded its retries.
# shellcheck disable=SC2034 # used by ktap.sh
RXE_GAVE_UP='rxe_[cs]: qp#[0-9]+ make_send_cqe: non-flush error status = 12
'

# Messages that the transport does not cause, as extended regular expressions, one per line.
log_expected() {
	# On a busy host, clock reads in an emulated machine are slow.
	echo 'clocksource: .*'
	echo 'sched: DL replenish lagged too much'
	echo 'workqueue: .* hogged CPU for'
	# Rate limiting, whatever the level of the messages; the first ten of them were checked.
	echo '[a-z0-9_]+: [0-9]+ callbacks suppressed'
	# The host of a virtual machine took its processor during an interrupt.
	echo 'hrtimer: interrupt took [0-9]+ ns'
	# Some kernels log nfsd's grace period at this level.
	echo 'NFSD: .*grace period'
	# Killed processes: NFS cannot start a state manager for a killed task. When SUNRPC's
	# xprt_transmit() meets the Call of a killed task, the error also ends the task that holds
	# the transport lock.
	echo 'nfs4_schedule_state_manager: kthread_run: -4'
	echo 'nfs: RPC call returned error 512'
	# rxe of 7.1: if a QP is drained just after it has received a message, rxe stores the message
	# in each Receive that is left. The last one is the marker of the drain, without a buffer.
	[[ $(uname -r) != 7.1.* ]] ||
		echo 'rxe_[cs]: qp#[0-9]+ do_complete: non-flush error status = 2'
	# Out-of-tree modules.
	echo '(rpcrdma|check_rq_head|delay_fn|limit_device|fail_[a-z_]+|spoil_wr): loading out-of-tree'
	echo 'rpcrdma: module verification failed'
	printf '%s' "$LOG_EXPECTED"
}

log_mark() {
	log_start="selftest $$ $RANDOM: $1"
	echo "<6>$log_start" >/dev/kmsg
}

# Marks the end of a test: from now on, tools/vm/scan-log judges the messages of the module.
log_end() {
	echo "<6>${log_start%%:*} ends" >/dev/kmsg
}

# Prints the log since the mark. If the ring buffer has overwritten the mark, that is an error.
log_since_mark() {
	dmesg --decode --color=never | awk -v mark="$log_start" '
		seen { print }
		index($0, mark) { seen = 1 }
		END { if (!seen) print "kern  :err   : the log of this test was overwritten" }'
}

# Prints unexpected messages; fails if there are any.
log_is_clean() {
	! log_since_mark | awk -f "$log_reports" |
		grep -E '^[a-z0-9]+ *:(emerg|alert|crit|err|warn) *:|BUG:|WARNING:|Call Trace|panicked' |
		grep -Ev "$(log_expected | paste -sd'|')"
}

log_blocked_tasks() {
	echo w >/proc/sysrq-trigger
}
