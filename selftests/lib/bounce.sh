# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# With BED_BOUNCE=1 the RDMA devices of the test bed need DMA mappings, which bounce.ko implements
# and checks (selftests/modules/bounce_device.c).

BOUNCE=/sys/module/bounce/parameters

bounces() { [ -d "$BOUNCE" ]; }

# bounce_count COUNTER: prints a counter of bounce.ko.
bounce_count() { cat "$BOUNCE/$1"; }

# Call before the first device is created.
bounce_begin() {
	[ -z "${BED_BOUNCE:-}" ] || insmod "$HELPERS/bounce.ko"
}

# Call after the last device was deleted. Fails if mappings are left or bounce.ko found a fault. The
# RDMA core frees devices asynchronously.
bounce_end() {
	local _ kept faults

	bounces || return 0
	for _ in $(seq $((300 * PACE))); do
		[ "$(cat /sys/module/bounce/refcnt)" -gt 0 ] || break
		sleep 0.5
	done
	kept=$(bounce_count mapped)
	faults=$(bounce_count faults)
	echo "# $(bounce_count total) mappings, $(bounce_count merged) of several pages each"
	[ "$kept" -eq 0 ] || echo "error: $kept mappings are left"
	[ "$faults" -eq 0 ] || echo "error: $faults faults, see the kernel log"
	rmmod bounce || echo "error: a device is in use"
	! bounces && [ "$kept" -eq 0 ] && [ "$faults" -eq 0 ]
}

# bounce_wait COUNTER LIMIT: waits until the counter is at most LIMIT.
bounce_wait() {
	local _

	for _ in $(seq $((300 * PACE))); do
		[ "$(bounce_count "$1")" -gt "$2" ] || return 0
		sleep 0.5
	done
	return 1
}
