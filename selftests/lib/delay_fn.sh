# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Widens race windows with delay_fn.ko.

# Functions of this module, by patterns of their mangled names: the path below the crate, with the
# length of each part in front of it.
# shellcheck disable=SC2034 # used by the tests
{
	RUST_SEND_REQUEST='11request_ops12send_request'
	RUST_SEND_DONE='10completion4done.*12sendctx_ring7SendCtx'
	RUST_READ_DONE='11ReplyReader9read_done'
	RUST_REPLY_DONE='9responder4post4done'
	RUST_ACCEPT='3svc3ops6accept'
}

# function_matching PATTERN: prints the only kernel function whose name matches the pattern.
function_matching() {
	local function

	function=$(awk -v name="$1" '$3 ~ name && $3 !~ /^__/ { print $3 }' /proc/kallsyms)
	[ -n "$function" ] || fail "no kernel function matches $1"
	[ "$(wc -l <<<"$function")" -eq 1 ] || fail "several kernel functions match $1: $function"
	echo "$function"
}

# delay_fn [entry|return PATTERN MILLISECONDS]...: delays entry to, or return from, each of
# these functions.
delay_fn() {
	local functions="" delays="" entries="" function

	[ ! -d /sys/module/delay_fn ] || rmmod delay_fn
	while [ $# -gt 0 ]; do
		function=$(function_matching "$2")
		functions+=${functions:+,}$function
		delays+=${delays:+,}$3
		entries+=${entries:+,}$([ "$1" = entry ] && echo 1 || echo 0)
		shift 3
	done
	insmod "$HELPERS/delay_fn.ko" function="$functions" delay_ms="$delays" entry="$entries"
}

# delay_hits [N]: prints how often function number N (1) was hit.
# shellcheck disable=SC2120 # most callers pass no argument
delay_hits() { cut -d, -f"${1:-1}" /sys/module/delay_fn/parameters/hits; }

# wait_delay_hits [HITS]: succeeds when the first function has been hit that often (once),
# fails after a minute.
# shellcheck disable=SC2120 # most callers pass no argument
wait_delay_hits() {
	local _

	for _ in $(seq $((600 * PACE))); do
		[ "$(delay_hits)" -lt "${1:-1}" ] || return 0
		sleep 0.1
	done
	return 1
}

# delays_have_ended COUNT: whether so many delays of the first function have ended.
delays_have_ended() { [ "$(cut -d, -f1 /sys/module/delay_fn/parameters/ended)" -ge "$1" ]; }

# Unloads the fault modules that tests load through this library or by insmod.
unload_fault_modules() {
	local each

	for each in delay_fn delay_post_recv fail_fn fail_local_inv fail_dma_map spoil_wr; do
		[ ! -d "/sys/module/$each" ] || rmmod "$each"
	done
}
