#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# With hardly any memory left, and what there is full of this mount's own dirty
# pages: I/O goes on, connections are made anew, and the data is whole.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# Of the provider: it says which allocation of its own failed, and that a connection
# ended while work was queued.
LOG_EXPECTED='rxe_[cs]: .*
'

# What is left to everybody at first, and at last, beside the reserves of the kernel. One that
# watches its memory needs more for the same, and kills somebody if it has less.
LEFT_MIB=$((8 * PACE))
LEAST_MIB=$((2 * PACE))
BALLAST=/run/rpcrdma-ballast

ROUNDS=${LONG:+100}
ROUNDS=${ROUNDS:-4}

available_mib() { awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo; }

# The pages that the kernel had to look at for memory to become free.
scanned() { awk '/^pgscan_(kswapd|direct) / { n += $2 } END { print n }' /proc/vmstat; }

# Without swap the pages of a tmpfs cannot be given back. The last of them are taken
# bit by bit: memory becomes available on the way, and later on.
memory_taken() {
	local _ surplus

	mkdir -p "$BALLAST"
	mountpoint -q "$BALLAST" || mount -t tmpfs -o size=100% tmpfs "$BALLAST"
	for _ in {1..20}; do
		surplus=$(($(available_mib) - LEFT_MIB))
		[ "$surplus" -gt 0 ] || return 0
		fallocate -l $(((surplus + 1) / 2))M "$(mktemp -p "$BALLAST")"
	done
}

memory_given_back() {
	! mountpoint -q "$BALLAST" || umount "$BALLAST"
}

test_cleanup() {
	memory_given_back
	cd /
	umount_all
	disconnect_trace_off
}

# Writers with more data than there is memory left, half of them in the page cache.
# What the server keeps of it has its memory before. Begins when pages are looked for.
io_under_memory_pressure() {
	local round each before start first connects

	need_local_bed
	nfs_mount "$1" rdma
	work_dir "pressure-$1"
	for each in {0..3}; do
		fallocate -l 16M "$WORK_ON_SERVER/load.$each"
	done
	load_start 4 256
	disconnect_trace_on
	memory_taken
	echo "$(available_mib) MiB are left"
	first=$(scanned)
	until [ "$(scanned)" -gt $((first + 500)) ]; do
		[ "$LEFT_MIB" -eq "$LEAST_MIB" ] || LEFT_MIB=$((LEFT_MIB - 1))
		memory_taken
		load_wait_progress
	done
	echo "$(available_mib) MiB are left, and $(($(scanned) - first)) pages were scanned"
	start=$(scanned)
	for round in $(seq "$ROUNDS"); do
		before=$(scanned)
		memory_taken
		connects=$(xprt_stat connect_count)
		reconnect
		wait_connect "$connects"
		load_wait_progress
		echo "round $round: $(($(scanned) - before)) pages scanned"
		ktap_progress "$round" "$ROUNDS"
	done
	[ "$(scanned)" -gt "$start" ] || fail "there was memory enough in all rounds"
	load_stop
	memory_given_back
	disconnect_trace_off
	rm -r "$WORK"
}

bed_up
TEST_TIMEOUT=$((TEST_TIMEOUT * (2 + ROUNDS / 5)))
[ $# -gt 0 ] || set -- "io_under_memory_pressure 3" "io_under_memory_pressure 4.2"
ktap_run "$@"
