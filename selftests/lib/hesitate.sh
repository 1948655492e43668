# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# For races that are lost too seldom otherwise.

# The one function of the kernel whose name has the pattern $1 in it.
function_like() {
	local function

	function=$(awk -v name="$1" '$3 ~ name && $3 !~ /^__/ { print $3 }' /proc/kallsyms)
	[ -n "$function" ] || fail "no function $1"
	[ "$(wc -l <<<"$function")" -eq 1 ] || fail "which of these? $function"
	echo "$function"
}

# hesitate [behind|before PATTERN MILLISECONDS]...: each of those functions returns so late,
# or begins so late.
hesitate() {
	local functions="" milliseconds="" before="" function

	[ ! -d /sys/module/hesitate ] || rmmod hesitate
	while [ $# -gt 0 ]; do
		function=$(function_like "$2")
		functions+=${functions:+,}$function
		milliseconds+=${milliseconds:+,}$3
		before+=${before:+,}$([ "$1" = before ] && echo 1 || echo 0)
		shift 3
	done
	insmod "$HELPERS/hesitate.ko" function="$functions" milliseconds="$milliseconds" \
		before="$before"
}

# How often the first of them has hesitated, or number $1.
# shellcheck disable=SC2120 # most have one
hesitations() { cut -d, -f"${1:-1}" /sys/module/hesitate/parameters/times; }

# has_hesitated [TIMES]: whether the first of them has done so, within ten seconds.
# shellcheck disable=SC2120 # as above
has_hesitated() {
	local _

	for _ in $(seq $((100 * PACE))); do
		[ "$(hesitations)" -lt "${1:-1}" ] || return 0
		sleep 0.1
	done
	return 1
}

# Ends that, and what late_receives.ko, unfenced.ko and unmapped.ko do.
go_on() {
	local each

	for each in hesitate late_receives unfenced unmapped; do
		[ ! -d "/sys/module/$each" ] || rmmod "$each"
	done
}
