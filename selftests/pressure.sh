#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Memory pressure: with little memory left, most of it dirty pages of this mount, I/O continues, the
# client reconnects, and the data is right.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# rxe reports its own failed allocations and connections that end while work is queued.
LOG_EXPECTED='rxe_[cs]: .*
'

# Memory to leave available, at first and at least. A debug kernel needs more for the same work, and
# its OOM killer starts earlier.
LEFT_MIB=$((8 * PACE))
MIN_LEFT_MIB=$((2 * PACE))
BALLAST=/run/rpcrdma-ballast

ROUNDS=${LONG:+100}
ROUNDS=${ROUNDS:-4}

available_mib() { awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo; }

# Prints the number of pages that reclaim has scanned.
scanned() { awk '/^pgscan_(kswapd|direct) / { n += $2 } END { print n }' /proc/vmstat; }

# Allocates memory until LEFT_MIB is available, in a tmpfs, which is not reclaimable without swap.
# Takes half of the rest each time, since reclaim frees memory meanwhile.
take_memory() {
	local _ surplus

	mkdir -p "$BALLAST"
	mountpoint -q "$BALLAST" || mount -t tmpfs -o size=100% tmpfs "$BALLAST"
	for _ in {1..20}; do
		surplus=$(($(available_mib) - LEFT_MIB))
		[ "$surplus" -gt 0 ] || return 0
		fallocate -l $(((surplus + 1) / 2))M "$(mktemp -p "$BALLAST")"
	done
}

release_memory() {
	! mountpoint -q "$BALLAST" || umount "$BALLAST"
}

test_cleanup() {
	release_memory
	cd /
	umount_all
}

# Writers with more data than memory is available, half of them buffered. The server's files are
# allocated before. The rounds begin when reclaim scans pages.
io_under_memory_pressure() {
	local round each before start first connects

	need_local_bed
	nfs_mount "$1" rdma
	work_dir "pressure-$1"
	for each in {0..3}; do
		fallocate -l 16M "$WORK_ON_SERVER/load.$each"
	done
	load_start 4 256
	take_memory
	echo "$(available_mib) MiB are available"
	first=$(scanned)
	until [ "$(scanned)" -gt $((first + 500)) ]; do
		[ "$LEFT_MIB" -eq "$MIN_LEFT_MIB" ] || LEFT_MIB=$((LEFT_MIB - 1))
		take_memory
		load_wait_progress
	done
	echo "$(available_mib) MiB are available, $(($(scanned) - first)) pages were scanned"
	start=$(scanned)
	for round in $(seq "$ROUNDS"); do
		before=$(scanned)
		take_memory
		connects=$(xprt_stat connect_count)
		reconnect
		wait_connect "$connects"
		load_wait_progress
		echo "round $round: $(($(scanned) - before)) pages scanned"
		ktap_progress "$round" "$ROUNDS"
	done
	[ "$(scanned)" -gt "$start" ] || fail "no page was scanned in any round"
	load_stop
	release_memory
	rm -r "$WORK"
}

bed_up
TEST_TIMEOUT=$((TEST_TIMEOUT * (2 + ROUNDS / 5)))
[ $# -gt 0 ] || set -- "io_under_memory_pressure 3" "io_under_memory_pressure 4.2"
ktap_run "$@"
