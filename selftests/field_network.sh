#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Networks that change or do not fit: a server whose address moves to another hardware address,
# links whose MTU is smaller than that of their ends, and containers that are killed.
#
# LONG=1 lets the server stay away for longer.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# rxe reports connections that exceeded their retries (12) or were not answered (13), the RDMA core
# a device that goes away with its namespace, SUNRPC servers that do not respond.
LOG_EXPECTED='rxe_[a-z0-9]+: qp#[0-9]+ make_send_cqe: non-flush error status = (12|13)
infiniband rxe_k: ib_query_port failed \(-19\)
(rpc_check_timeout|call_decode): [0-9]+ callbacks suppressed
'

AWAY=${LONG:+150}
AWAY=${AWAY:-20}

CONTAINER=rpcrdma-container

# server_address ENTRY...: changes the client's neighbour entry of the server.
server_neighbour() { on_client ip neighbour "$@" dev "$BED_CLIENT_IF"; }
server_hardware() { cat "/sys/class/net/$BED_SERVER_IF/address"; }

# neighbour_lasts: makes the client's entry of the server permanent.
neighbour_lasts() { server_neighbour replace "$SERVER4" lladdr "$(server_hardware)" nud permanent; }

# Prints the milliseconds from the connection manager's last report that the hardware address has
# changed to the next attempt to connect.
attempt_after_return() {
	awk '
		match($0, /[0-9]+\.[0-9]+: /) { now = substr($0, RSTART) * 1000 }
		/ cm_event_handler: .* UNREACHABLE / { back = now; took = "" }
		back && took == "" && / xprtrdma_op_connect: .* delay=0$/ { took = int(now - back) }
		END { if (took != "") print took }' "$TRACING/trace"
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
	echo 1 >"$TRACING/events/rdma_cma/cm_event_handler/enable"
	server_neighbour replace "$SERVER4" lladdr 02:00:00:00:02:99 nud permanent
	sleep "$AWAY"
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

# Both ends have an MTU of 9000, and the link between them one of 1500. Small messages pass. Long
# ones end in an error on a soft mount; other mounts work meanwhile, and "umount -f" does. The soft
# mount uses NFSv3: an RPC of NFSv4 that has been sent ends in an error only if it times out while
# the transport is not connected (rpc_check_timeout()).
long_packets_are_lost() {
	local each reading writing began status

	need_link
	echo "some data" >"$EXPORT/small"
	head -c 1M /dev/zero >"$EXPORT/large"
	set_mtu 9000
	nfs_mount 3 rdma soft,timeo=50,retrans=1
	nfs_mount_at "$MNT-beside" 4.1 rdma actimeo=0
	grep -q "some data" "$MNT/small"
	timeout "$IO_TIMEOUT" dd if=/dev/zero of="$MNT/large" bs=1M count=1 oflag=direct \
		conv=notrunc status=none 2>"$ktap_dir/written" &
	writing=$!
	timeout "$IO_TIMEOUT" dd if="$MNT/large" of=/dev/null bs=1M iflag=direct status=none \
		2>"$ktap_dir/read" &
	reading=$!
	for each in {1..20}; do
		timeout "$IO_TIMEOUT" cat "$MNT-beside/small" >/dev/null || fail "another mount hangs"
	done
	for each in "$writing" "$reading"; do
		status=0
		wait "$each" || status=$?
		[ "$status" -ne 0 ] || fail "a long transfer succeeded"
		# timeout exits with 124.
		[ "$status" -eq 1 ] || fail "no error after $IO_TIMEOUT s: status $status"
	done
	cat "$ktap_dir/written" "$ktap_dir/read"
	began=$SECONDS
	umount -f "$MNT" || umount -f -l "$MNT"
	echo "unmounted after $((SECONDS - began)) s"
	set_mtu 1500
	umount_all
	rm "$EXPORT/small" "$EXPORT/large"
}

container_add() {
	ip netns add "$CONTAINER"
	ip -netns "$CONTAINER" link add rpck0 type veth peer name rpck1 netns "$BED_SWITCH"
	on_switch link set rpck1 master switch up
	ip -netns "$CONTAINER" address add 192.0.2.7/24 dev rpck0
	ip -netns "$CONTAINER" link set lo up
	ip -netns "$CONTAINER" link set rpck0 up
	ip netns exec "$CONTAINER" rdma link add rxe_k type rxe netdev rpck0
	for _ in {1..10}; do
		! ip netns exec "$CONTAINER" ping -q -c 1 -W 10 "$SERVER4" || return 0
	done
	return 1
}

container_is_gone() {
	! on_switch link show rpck1 >/dev/null 2>&1 && [ ! -e /sys/class/infiniband/rxe_k ]
}

# A container with a mount and a device of its own is killed during I/O. Its network namespace is
# freed, with the device in it, and no reference to the module is left.
killed_container_is_freed() {
	local round users deadline each

	need_link
	users=$(module_users)
	mkdir -p "$MNT"
	for round in 1 2 3; do
		container_add >/dev/null || fail "the container has no network"
		rm -f "$ktap_dir/running"
		# shellcheck disable=SC2016 # expanded there
		nsenter --net="/run/netns/$CONTAINER" unshare --mount --propagation private sh -c '
			mount -t nfs -o "vers=4.2,proto=rdma,port=$1" "$2" "$3" || exit
			>"$4"
			while dd if=/dev/zero of="$3/container" bs=64k count=64 oflag=direct \
				status=none; do :; done' \
			sh "$BED_PORT" "$SERVER4:$EXPORT" "$MNT" "$ktap_dir/running" &
		deadline=$((SECONDS + IO_TIMEOUT))
		until [ -e "$ktap_dir/running" ] && [ -s "$EXPORT/container" ]; do
			[ "$SECONDS" -lt "$deadline" ] || fail "no I/O in the container"
			sleep 0.2
		done
		ip netns delete "$CONTAINER"
		pkill -KILL --ns $! --nslist mnt . 2>/dev/null || kill -KILL $!
		wait $! 2>/dev/null || :
		rm "$EXPORT/container"
		deadline=$((SECONDS + IO_TIMEOUT))
		until container_is_gone; do
			[ "$SECONDS" -lt "$deadline" ] || fail "round $round: the namespace is not freed"
			sleep 0.5
		done
	done
	deadline=$((SECONDS + IO_TIMEOUT))
	until [ "$(module_users)" -le "$users" ]; do
		[ "$SECONDS" -lt "$deadline" ] || fail "references to the module are left"
		sleep 0.5
	done
}

test_cleanup() {
	cd /
	trace_off
	umount_all
	! bed_has_link || {
		link_up
		set_mtu 1500
		server_neighbour delete "$SERVER4"
		server_resolve
		ip netns delete "$CONTAINER"
	}
	server_up || { server_stop; server_start; }
} >/dev/null 2>&1

bed_up
TEST_TIMEOUT=$((TEST_TIMEOUT * 2))
[ $# -gt 0 ] || set -- server_moves "server_moves nconnect=4" hardware_address_flaps \
	failed_neighbour_ends_no_connection long_packets_are_lost \
	killed_container_is_freed
ktap_run "$@"
