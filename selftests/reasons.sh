#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The kernel log says why the client has no connection: mount reports an errno only. Each case breaks
# one thing, and looks for the line that Documentation/operating.rst lists.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# rxe reports connections that exceeded their retries (12), SUNRPC reports servers that do not
# respond.
LOG_EXPECTED='rxe_[cs]: qp#[0-9]+ make_send_cqe: non-flush error status = 12
(rpc_check_timeout|call_decode): [0-9]+ callbacks suppressed
'

need_reasons() {
	need_local_bed
	[ "$(module_kind)" != c ] || skip "the C module logs no reason"
}

# reasons TEXT: prints the number of lines since the start of the test that say so.
reasons() { log_since_mark | grep -cE "rpcrdma: $1" || :; }

# wait_reason TEXT
wait_reason() {
	local _

	for _ in $(seq $((100 * PACE))); do
		[ "$(reasons "$1")" -eq 0 ] || return 0
		sleep 1
	done
	log_since_mark | grep rpcrdma
	fail "the log does not say: $1"
}

# A mount that is not tried again fails.
fails_to_mount() {
	! nfs_mount 4.2 rdma clientaddr=192.0.2.2,retry=0 2>&1 || fail "mounted"
}

# Nothing listens. However often the client tries, one line says so, and another one that it has
# connected.
refused() {
	local _ attempts=0

	need_reasons
	nfs_mount 3 rdma
	work_dir reasons
	load_start 1
	trace_on xprtrdma_connect
	server_stop
	for _ in $(seq $((100 * PACE))); do
		attempts=$(traced xprtrdma_connect)
		[ "$attempts" -lt 4 ] || break
		sleep 1
	done
	trace_off
	[ "$attempts" -ge 4 ] || fail "only $attempts attempts"
	[ "$(reasons "cannot connect to $SERVER4:$BED_PORT: refused: no NFS server listens")" -eq 1 ] ||
		fail "$(reasons "cannot connect to $SERVER4") lines of $attempts attempts say so"
	[ "$(reasons "connected to")" -eq 0 ] || fail "connected before the server was there"
	server_start
	load_wait_progress
	load_stop
	wait_reason "connected to $SERVER4:$BED_PORT"
	rm -r "$WORK"
}

# No RDMA device of the client reaches the address.
no_device() {
	need_reasons
	need_link
	device_delete "$BED_CLIENT_DEV"
	fails_to_mount
	device_add "$BED_CLIENT_DEV"
	wait_reason "cannot connect to $SERVER4:$BED_PORT: no RDMA device of this host"
	nfs_mount 4.2 rdma
	# Another transport.
	[ "$(reasons "connected to")" -eq 0 ] || fail "the first attempt of a mount is reported"
}

# No host has the address.
no_host() {
	need_reasons
	need_link
	link_down
	on_client ip neighbour flush dev "$BED_CLIENT_IF"
	fails_to_mount
	link_up
	wait_reason "cannot connect to $SERVER4:$BED_PORT: no host answers"
}

# There is no route.
no_route() {
	need_reasons
	need_link
	on_client ip route del 192.0.2.0/24 dev "$BED_CLIENT_IF"
	fails_to_mount
	on_client ip route replace 192.0.2.0/24 dev "$BED_CLIENT_IF" src 192.0.2.2
	wait_reason "cannot connect to $SERVER4:$BED_PORT: no route"
}

test_cleanup() {
	cd /
	trace_off
	link_repair
	server_up || server_start
	umount_all
} 2>/dev/null

bed_up
[ $# -gt 0 ] || set -- refused no_device no_host no_route
ktap_run "$@"
