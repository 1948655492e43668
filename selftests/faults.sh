#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Failing allocations and injected disconnects under a verified load: errors are handled, I/O
# continues, and the data is right. Needs a kernel with fault injection (KERNEL=debug).
#
# vm: --memory 4G

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# The RDMA driver and the RDMA core report their own failed allocations, the driver also reports
# connections that end while work is queued, and kmemleak reports a failed allocation of its own.
LOG_EXPECTED='(rxe|siw)_[cs]: .*
rdma_rw_init_mrs: failed to allocated [0-9]+ MRs
kmemleak: Cannot allocate a scan area
'

FAULTS=/sys/kernel/debug
# Upper bound for the number of faults. The kernel counts down from it.
MAX_FAULTS=1000000

ROUNDS=${LONG:+100}
ROUNDS=${ROUNDS:-10}

need_faults() {
	need_local_bed
	[ -d "$FAULTS/$1" ] || skip "needs a kernel with $1"
}

# fault_set KIND NAME VALUE: sets a parameter, if that kind of fault injection has it.
fault_set() {
	[ ! -e "$FAULTS/$1/$2" ] || echo "$3" >"$FAULTS/$1/$2"
}

# addresses NAME: prints the first and the last address of a kernel function, or of module rpcrdma.
addresses() {
	awk -v what="$1" '
		what == "rpcrdma" ? $4 == "[rpcrdma]" && tolower($2) == "t" : seen == 1 || $3 == what {
			print $1; seen++
		}' /proc/kallsyms | sort | sed -n '1p;$p'
}

# arm KIND: selects allocations with the module on their call stack.
arm() {
	local range

	mapfile -t range < <(addresses rpcrdma)
	[ ${#range[@]} -eq 2 ] || fail "no addresses of the module in /proc/kallsyms"
	fault_set "$1" verbose 0
	fault_set "$1" ignore-gfp-wait N
	fault_set "$1" min-order 0
	fault_set "$1" stacktrace-depth 32
	fault_set "$1" require-start "0x${range[0]}"
	fault_set "$1" require-end "0x${range[1]}"
	# vmalloc is called by the RDMA driver only, and floods the log when it fails.
	mapfile -t range < <(addresses __vmalloc_node_range_noprof)
	fault_set "$1" reject-start "0x${range[0]}"
	fault_set "$1" reject-end "0x${range[1]}"
	fault_set "$1" times "$MAX_FAULTS"
}

# set_fault_rate KIND PERCENT [INTERVAL]: of one in INTERVAL (1) allocations, PERCENT fail; 0 stops
# the injection. Both ends of a new connection make more than a thousand allocations: with one
# failure in a hundred, no connection would ever be established.
set_fault_rate() {
	fault_set "$1" interval "${3:-1}"
	fault_set "$1" probability "$2"
}

test_cleanup() {
	local kind

	for kind in failslab fail_page_alloc fail_sunrpc; do
		set_fault_rate $kind 0
	done
	cd /
	umount_all
}

faults_injected() { echo $((MAX_FAULTS - $(cat "$FAULTS/$1/times"))); }

# io_under_allocation_failures KIND VERSION
io_under_allocation_failures() {
	local round connects

	need_faults "$1"
	nfs_mount "$2" rdma
	work_dir "faults-$1"
	load_start
	arm "$1"
	for round in $(seq "$ROUNDS"); do
		connects=$(xprt_stat connect_count)
		set_fault_rate "$1" 5 100
		reconnect
		wait_connect "$connects"
		load_wait_progress
		echo "round $round: $(faults_injected "$1") allocations failed"
		ktap_progress "$round" "$ROUNDS"
	done
	set_fault_rate "$1" 0
	[ "$(faults_injected "$1")" -gt 0 ] || fail "no allocation failed"
	load_wait_progress
	load_stop
	rm -r "$WORK"
}

mount_under_allocation_failures() {
	local turn mounted=0 interval=100

	need_faults "$1"
	# A mount allocates few pages.
	[ "$1" = failslab ] || interval=5
	arm "$1"
	for turn in $(seq "$ROUNDS"); do
		set_fault_rate "$1" 5 $interval
		# One attempt: retrying for two minutes, the default, would hide the error.
		if nfs_mount 4.2 rdma retry=0; then
			mounted=$((mounted + 1))
			ls "$MNT" >/dev/null || :
		fi
		umount_all
		ktap_progress "$turn" "$ROUNDS"
	done
	set_fault_rate "$1" 0
	echo "$mounted of $turn mounts succeeded, $(faults_injected "$1") allocations failed"
	[ "$(faults_injected "$1")" -gt 0 ] || fail "no allocation failed"
	nfs_mount 4.2 rdma
	work_dir "mounting-$1"
	head -c 1000000 /dev/urandom >"$WORK/file"
	cmp "$WORK/file" "$WORK_ON_SERVER/file"
	rm -r "$WORK"
}

# injected_disconnects VERSION END: END is "client" or "either".
injected_disconnects() {
	local before left deadline=$((SECONDS + TEST_TIMEOUT / 2)) client_only=N

	need_faults fail_sunrpc
	nfs_mount "$1" rdma
	work_dir "disconnects-$1"
	load_start
	before=$(xprt_stat connect_count)
	fault_set fail_sunrpc verbose 0
	fault_set fail_sunrpc ignore-cache-wait Y
	[ "$2" != client ] || client_only=Y
	fault_set fail_sunrpc ignore-server-disconnect $client_only
	fault_set fail_sunrpc interval 100
	fault_set fail_sunrpc times "$ROUNDS"
	fault_set fail_sunrpc probability 100
	while left=$(cat "$FAULTS/fail_sunrpc/times") && [ "$left" -gt 0 ]; do
		[ "$SECONDS" -lt "$deadline" ] || fail "$left of $ROUNDS disconnects have not happened"
		sleep 1
	done
	fault_set fail_sunrpc probability 0
	wait_connect "$before"
	load_wait_progress
	echo "connected $(($(xprt_stat connect_count) - before)) times"
	load_stop
	rm -r "$WORK"
}

bed_up
TEST_TIMEOUT=$((TEST_TIMEOUT * (1 + ROUNDS / 10)))
[ $# -gt 0 ] || set -- \
	"io_under_allocation_failures failslab 4.2" "io_under_allocation_failures failslab 3" \
	"io_under_allocation_failures fail_page_alloc 4.2" \
	"mount_under_allocation_failures failslab" \
	"mount_under_allocation_failures fail_page_alloc" \
	"injected_disconnects 3 client" "injected_disconnects 4.2 client" \
	"injected_disconnects 4.2 either"
ktap_run "$@"
