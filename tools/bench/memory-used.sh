# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Functions of both guests of tools/bench/memory. The client asks by a file in /share, and both write
# what their kernels hold to /share/client.WHEN and /share/server.WHEN.

# shellcheck disable=SC2034 # for the scripts of both guests
BASE_ADDRESS=10.9.0.254

# kernel_holds: prints the KiB of slabs, of vmalloc() and of per-CPU memory, how much of that rxe has
# for its queues, and the rest. Empty slabs, and what can be reclaimed, do not count. Waits until the figure is
# at rest, for work items free memory later.
kernel_holds() {
	local before=0 now queues

	for _ in $(seq 30); do
		echo 3 >/proc/sys/vm/drop_caches
		echo 1 | tee /sys/kernel/slab/*/shrink >/dev/null
		now=$(awk '/^(SUnreclaim|VmallocUsed|Percpu):/ { sum += $2 } END { print sum }' /proc/meminfo)
		[ $((now - before)) -gt 64 ] || [ $((before - now)) -gt 64 ] || break
		before=$now
		sleep 2
	done
	queues=$(awk '/ rxe_queue_init/ { sum += $2 } END { print int(sum / 1024) }' /proc/vmallocinfo)
	echo "$now" "$queues" $((now - queues))
}
