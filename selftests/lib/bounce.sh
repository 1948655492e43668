# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Devices for which memory has to be mapped (selftests/modules/bounce_device.c). With BED_BOUNCE=1
# the bed's are such devices.

BOUNCE=/sys/module/bounce/parameters

bounces() { [ -d "$BOUNCE" ]; }

# What bounce.ko counts.
bounce_count() { cat "$BOUNCE/$1"; }

# Before there is a device.
bounce_begin() {
	[ -z "${BED_BOUNCE:-}" ] || insmod "$HELPERS/bounce.ko"
}

# After the last one has been deleted, which the core may do a moment later.
bounce_end() {
	local _ kept faults

	bounces || return 0
	for _ in $(seq $((20 * PACE))); do
		[ "$(cat /sys/module/bounce/refcnt)" -gt 0 ] || break
		sleep 0.5
	done
	kept=$(bounce_count mapped)
	faults=$(bounce_count faults)
	echo "# $(bounce_count total) mappings, $(bounce_count joined) of several pages"
	rmmod bounce || return
	[ "$kept" -eq 0 ] || echo "error: $kept mappings are left"
	[ "$faults" -eq 0 ] || echo "error: $faults faults, of which the log tells"
	[ "$kept" -eq 0 ] && [ "$faults" -eq 0 ]
}

# bounce_wait COUNTER MOST: whether that is no more soon.
bounce_wait() {
	local _

	for _ in $(seq $((60 * PACE))); do
		[ "$(bounce_count "$1")" -gt "$2" ] || return 0
		sleep 0.5
	done
	return 1
}
