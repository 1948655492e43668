#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Networks that change: a server whose address moves to another hardware address, and neighbour
# entries that fail.
#
# LONG=1 lets the server stay away for longer.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# rxe reports connections that exceeded their retries (12), SUNRPC reports servers that do not
# respond.
LOG_EXPECTED='rxe_[a-z0-9]+: qp#[0-9]+ make_send_cqe: non-flush error status = 12
(rpc_check_timeout|call_decode): [0-9]+ callbacks suppressed
'

AWAY=${LONG:+150}
AWAY=${AWAY:-20}

# server_address ENTRY...: changes the client's neighbour entry of the server.
server_neighbour() { on_client ip neighbour "$@" dev "$BED_CLIENT_IF"; }
server_hardware() { cat "/sys/class/net/$BED_SERVER_IF/address"; }

# neighbour_lasts: makes the client's entry of the server permanent.
neighbour_lasts() { server_neighbour replace "$SERVER4" lladdr "$(server_hardware)" nud permanent; }

# Prints the milliseconds from the event "moved back" in the trace to the next attempt to connect.
attempt_after_return() {
	awk '
		match($0, /[0-9]+\.[0-9]+: /) { now = substr($0, RSTART) * 1000 }
		/ tracing_mark_write: moved back$/ { back = now }
		back && / xprtrdma_op_connect: .* delay=0$/ { print int(now - back); exit }' \
		"$TRACING/trace"
}

# The server's address moves to a machine that does not answer, and back. Then the client connects
# within two seconds, however long the server was away; the data is whole. Of the C module, tasks
# wait three seconds after each attempt.
server_moves() {
	local took

	need_link
	nfs_mount 3 rdma "$@"
	work_dir moves
	load_start
	neighbour_lasts
	trace_on xprtrdma_op_connect xprtrdma_connect
	server_neighbour replace "$SERVER4" lladdr 02:00:00:00:02:99 nud permanent
	sleep "$AWAY"
	echo "moved back" >"$TRACING/trace_marker"
	neighbour_lasts
	load_wait_progress
	trace_off
	took=$(attempt_after_return)
	echo "$(traced xprtrdma_connect) attempts ended, the next one $took ms after the return"
	[ "$took" ] || fail "the client continued without connecting"
	[ "$took" -le $((2000 * PACE)) ] || xfail_on_c "the next attempt came after $took ms"
	load_stop
	rm -r "$WORK"
}

# The hardware address changes once a second, and is right in between.
hardware_address_flaps() {
	local round

	need_link
	nfs_mount 3 rdma "$@"
	work_dir flaps
	load_start
	for round in {1..10}; do
		server_neighbour replace "$SERVER4" lladdr 02:00:00:00:02:99 nud permanent
		sleep 1
		neighbour_lasts
		sleep 1
	done
	load_wait_progress
	load_stop
	rm -r "$WORK"
}

neighbour_has_failed() { server_neighbour show "$SERVER4" | grep -q FAILED; }

# An ARP request is not answered while the connection is idle, so the client's neighbour entry has
# no hardware address. The connection is not closed, and carries the next Call.
failed_neighbour_ends_no_connection() {
	local events=$TRACING/events/rdma_cma

	need_link
	nfs_mount 3 rdma actimeo=0
	work_dir idle
	touch "$WORK/file"
	trace_on
	echo 1 >"$events/cm_event_handler/enable"
	link_down
	server_neighbour flush "$SERVER4"
	! on_client ping -q -c 1 -W 10 "$SERVER4" || fail "the link is not down"
	wait_for "the neighbour entry does not fail" neighbour_has_failed
	link_up
	server_resolve
	trace_off
	grep -q ' cm_event_handler: .* UNREACHABLE ' "$TRACING/trace" ||
		fail "the connection manager did not report it: $(grep -v '^#' "$TRACING/trace")"
	stat "$WORK/file" >/dev/null
	[ "$(xprt_stat connect_count)" -eq 1 ] ||
		fail "connected $(xprt_stat connect_count) times"
	rm -r "$WORK"
}

test_cleanup() {
	cd /
	trace_off
	umount_all
	! bed_has_link || {
		link_up
		server_neighbour delete "$SERVER4"
		server_resolve
	}
	server_up || { server_stop; server_start; }
} >/dev/null 2>&1

bed_up
TEST_TIMEOUT=$((TEST_TIMEOUT * 2))
[ $# -gt 0 ] || set -- server_moves "server_moves nconnect=4" hardware_address_flaps \
	failed_neighbour_ends_no_connection
ktap_run "$@"
