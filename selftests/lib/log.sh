# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The kernel log. A test passes only if the kernel said nothing at level
# warning or above while it ran.

log_start=

# More of log_expected, for the test program that provokes it.
LOG_EXPECTED=

# What the surroundings say and the transport cannot help, one extended
# regular expression a line, each with its reason.
log_expected() {
	# An emulated machine on a busy host is slow at answering its clocks.
	echo 'clocksource: .*'
	echo 'sched: DL replenish lagged too much'
	echo 'workqueue: .* hogged CPU for'
	# A number of messages of a kind, whatever their level; the first ten were judged.
	echo '[a-z0-9_]+: [0-9]+ callbacks suppressed'
	# nfsd tells of its grace period at this level on some kernels.
	echo 'NFSD: .*grace period'
	# Where processes are killed: NFS of a state manager whose maker was. And SUNRPC,
	# when it comes to send the Call of a task that was killed, ends the task that
	# holds the transport as if that were the killed one.
	echo 'nfs4_schedule_state_manager: kthread_run: -4'
	echo 'nfs: RPC call returned error 512'
	# Loading a module that was built out of tree.
	echo '(rpcrdma|check_rq_head|delay_fn|limit_device|fail_local_inv|fail_dma_map): loading out-of-tree module taints kernel'
	echo 'rpcrdma: module verification failed'
	printf '%s' "$LOG_EXPECTED"
}

log_mark() {
	log_start="selftest $$ $RANDOM: $1"
	echo "<6>$log_start" >/dev/kmsg
}

# A mark that so much followed that the kernel has forgotten it is a complaint itself.
log_since_mark() {
	dmesg --decode --color=never | awk -v mark="$log_start" '
		seen { print }
		index($0, mark) { seen = 1 }
		END { if (!seen) print "kern  :err   : the log of this test is lost" }'
}

# Prints what should not be there; succeeds when that is nothing.
log_is_clean() {
	! log_since_mark |
		grep -E '^[a-z0-9]+ *:(emerg|alert|crit|err|warn) *:|BUG:|WARNING:|Call Trace|panicked' |
		grep -Ev "$(log_expected | paste -sd'|')"
}

log_blocked_tasks() {
	echo w >/proc/sysrq-trigger
}
