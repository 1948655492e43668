# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# For races that are lost too seldom otherwise.

# hesitate PATTERN MILLISECONDS [before]: that function of the kernel returns so late, or
# begins so late.
hesitate() {
	local function

	go_on
	function=$(awk -v name="$1" '$3 ~ name && $3 !~ /^__/ { print $3 }' /proc/kallsyms)
	[ "$(wc -l <<<"$function")" -eq 1 ] || fail "which of these? $function"
	insmod "$HELPERS/hesitate.ko" function="$function" milliseconds="$2" ${3:+before=1}
}

# How often it has hesitated.
hesitations() { cat /sys/module/hesitate/parameters/times; }

go_on() { [ ! -d /sys/module/hesitate ] || rmmod hesitate; }
