#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Connecting to a server that is away, unreachable, silent or moved, or over a device that is
# removed meanwhile: the caller gets the right error in time, and can be killed or unmounted.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# rxe tells of each connection that ran out of retries (12), SUNRPC of servers that do
# not answer.
LOG_EXPECTED='rxe_[cs]: qp#[0-9]+ make_send_cqe: non-flush error status = 12
(rpc_check_timeout|call_decode): [0-9]+ callbacks suppressed
'

# A device may go while it carries no more than an attempt to connect: that ends then, and
# another is made when the device is back.
device_removed_while_connecting() {
	local _ before mounting

	need_link
	# Nobody asks again soon where the server is.
	modprobe nfsv4
	server_resolve
	trace_on
	echo 1 >"$TRACING/events/rdma_cma/cm_qp_create/enable"
	link_down
	nfs_mount 4.2 rdma &
	mounting=$!
	for _ in $(seq $((100 * PACE))); do
		[ "$(traced cm_qp_create)" -eq 0 ] || break
		sleep 0.1
	done
	[ "$(traced cm_qp_create)" -gt 0 ] || fail "nobody connects"
	trace_off
	sleep 1
	before=$SECONDS
	device_delete "$BED_CLIENT_DEV"
	echo "the device has gone after $((SECONDS - before)) s"
	# The attempt itself is given up after a minute.
	[ $((SECONDS - before)) -lt 45 ] || fail "it waited for the attempt"
	device_add "$BED_CLIENT_DEV"
	link_up
	# Where all takes many times as long, the next attempt may come before the device is back,
	# and who mounts is told that there is none.
	wait "$mounting" || { [ "$PACE" -gt 1 ] && nfs_mount 4.2 rdma; } || fail "not mounted"
	[ "$(xprt_stat connect_count)" -eq 1 ] || fail "connected before"
	ls "$MNT" >/dev/null
}

# The client's route to the server. Only with that do messages of the connection manager
# find a way out (link_down).
route() { on_client ip route "$1" 192.0.2.0/24 dev "$BED_CLIENT_IF" src 192.0.2.2; }

# Who mounts without a route is told at once, and so is a container that has lost its own.
no_route() {
	local status=0

	need_link
	nfs_mount 3 rdma fatal_neterrors=ENETDOWN:ENETUNREACH,actimeo=0
	work_dir no-route
	touch "$WORK/file"
	server_stop
	sleep 2
	route del
	timeout 100 stat "$WORK/file" 2>&1 || status=$?
	# 124 is that of timeout.
	[ "$status" -eq 1 ] || fail "who waits was not told: $status"
	umount -f -l "$MNT"
	server_start
	status=0
	nfs_mount 4.2 rdma clientaddr=192.0.2.2 >"$ktap_dir/mount" 2>&1 || status=$?
	route add
	cat "$ktap_dir/mount"
	[ "$status" -ne 0 ] || fail "mounted without a route"
	grep -q 'Network is unreachable' "$ktap_dir/mount" || fail "that is not why"
	nfs_mount 4.2 rdma
	rm -r "$MNT/no-route"
}

# pauses ATTEMPTS: waits until the client, whose server is away, has tried to connect that
# often and pauses. After the third attempt that is for 20 seconds, 3 of which may have passed.
pauses() {
	local _

	for _ in $(seq $((600 * PACE))); do
		! awk -v enough="$1" '
			/ xprtrdma_connect: / { attempts++; pause = 0 }
			/ xprtrdma_op_connect: / { pause = !/ delay=0$/ }
			END { exit attempts >= enough && pause ? 0 : 1 }' "$TRACING/trace" || return 0
		sleep 0.1
	done
	xfail_on_c "there is no pause"
}

# A server that has moved while the client pauses is asked at once when an administrator
# says where it is now.
new_address_ends_backoff() {
	local address=192.0.2.3 file began

	need_local_bed
	ip address add "$address/24" dev "$BED_SERVER_IF"
	nfs_mount 3 rdma
	work_dir another-address
	load_start 1
	trace_on xprtrdma_op_connect xprtrdma_connect
	server_stop
	pauses 3
	server_start
	began=$SECONDS
	file=$(with_client_sysfs sh -c \
		'echo /sys/kernel/sunrpc/xprt-switches/*/xprt-*-rdma/dstaddr')
	with_client_sysfs timeout --foreground -s KILL $((10 * PACE)) \
		sh -c "echo $address >$file" || fail "it is not taken in the pause"
	load_wait_progress
	trace_off
	echo "I/O goes on after $((SECONDS - began)) s"
	grep -q " xprtrdma_op_connect: peer=\[$address\]:[0-9]* delay=0$" "$TRACING/trace" ||
		fail "the new address is not tried at once"
	load_stop
	rm -r "$WORK"
}

# destroyed COUNT ADDRESS SECONDS: waits until so many transports to there are destroyed.
destroyed() {
	local deadline=$((SECONDS + $3))

	while [ "$(grep -c " xprt_destroy: peer=\[$2\]" "$TRACING/trace")" -lt "$1" ]; do
		[ "$SECONDS" -lt "$deadline" ] || fail "a transport is left after $3 s"
		sleep 0.1
	done
}

# Who unmounts does not wait for the pause between attempts to connect.
unmount_during_backoff() {
	local each asking=() connects began

	need_local_bed
	nfs_mount 3 rdma nconnect=2,actimeo=0
	work_dir unmounts
	touch "$WORK"/{1..4}
	trace_on xprtrdma_op_connect xprtrdma_connect
	echo 1 >"$TRACING/events/sunrpc/xprt_destroy/enable"
	server_stop
	for each in {1..4}; do
		stat "$WORK/$each" >/dev/null 2>&1 &
		asking+=($!)
	done
	# Three for each of the connections.
	pauses 6
	kill -KILL "${asking[@]}"
	wait "${asking[@]}" 2>/dev/null || :
	connects=$(traced xprtrdma_connect)
	began=$SECONDS
	umount -f "$MNT"
	destroyed 2 "$SERVER4" 10
	echo "unmounted after $((SECONDS - began)) s"
	trace_off
	[ $((SECONDS - began)) -lt 10 ] || fail "it waited for the pause"
	[ "$(traced xprtrdma_connect)" -eq "$connects" ] || fail "somebody still connects"
	server_start
	rm -r "$EXPORT/unmounts"
}

# Who mounts from a server that is switched off is told what TCP would say, and may try again.
unresolved_neighbour() {
	local status=0

	need_link
	link_down
	on_client ip neighbour flush dev "$BED_CLIENT_IF"
	nfs_mount 4.2 rdma clientaddr=192.0.2.2,retry=0 2>"$ktap_dir/mount" || status=$?
	cat "$ktap_dir/mount"
	link_up
	[ "$status" -ne 0 ] || fail "mounted from nobody"
	grep -q 'No route to host' "$ktap_dir/mount" || xfail_on_c "that is not why"
	nfs_mount 4.2 rdma
}

# An address on the link that is nobody's. Messages to it find their way out, and are lost.
SILENT=192.0.2.9

silent_peer() {
	on_client ip neighbour "$1" "$SILENT" lladdr 02:00:00:00:02:09 dev "$BED_CLIENT_IF" \
		nud permanent
}

# mount_silent_peer OPTION...
mount_silent_peer() {
	SERVER4=$SILENT nfs_mount 4.2 rdma "clientaddr=192.0.2.2,retry=0,$1" 2>"$ktap_dir/mount"
}

# Who mounts from a peer that is silent is told when the connection manager has given up,
# after 74 seconds (16 messages, 4.6 seconds each), and does not try again.
silent_peer_times_out() {
	local began=$SECONDS status=0

	need_link
	silent_peer replace
	mount_silent_peer timeo=1200 || status=$?
	echo "told after $((SECONDS - began)) s"
	cat "$ktap_dir/mount"
	[ "$status" -ne 0 ] || fail "mounted from nobody"
	[ $((SECONDS - began)) -lt 110 ] || fail "it was tried again"
	grep -q 'No route to host' "$ktap_dir/mount" || xfail_on_c "that is not why"
}

# Who mounts from a silent peer may be killed, and the attempt to connect ends then, not when the
# connection manager has given up.
killed_mount_ends_connect() {
	local _ mounting began

	need_link
	# Nobody waits for what the connection manager has not been asked.
	modprobe nfsv4
	silent_peer replace
	trace_on
	echo 1 >"$TRACING/events/rdma_cma/cm_send_req/enable"
	echo 1 >"$TRACING/events/rdma_cma/cm_id_destroy/enable"
	mount_silent_peer timeo=1200 &
	mounting=$!
	for _ in $(seq $((100 * PACE))); do
		[ "$(traced cm_send_req)" -eq 0 ] || break
		sleep 0.1
	done
	[ "$(traced cm_send_req)" -gt 0 ] || fail "nobody connects"
	began=$SECONDS
	pkill -KILL -x mount.nfs
	wait "$mounting" 2>/dev/null || :
	until grep -q " cm_id_destroy: .* dst=$SILENT:" "$TRACING/trace"; do
		[ $((SECONDS - began)) -lt 30 ] || xfail_on_c "the attempt goes on"
		sleep 0.1
	done
	echo "ended after $((SECONDS - began)) s"
	trace_off
}

test_cleanup() {
	cd /
	trace_off
	! bed_has_link || { link_up; route replace; silent_peer delete; }
	server_up || server_start
	umount_all
	ip address delete 192.0.2.3/24 dev "$BED_SERVER_IF"
} 2>/dev/null

bed_up
TEST_TIMEOUT=$((TEST_TIMEOUT * 2))
[ $# -gt 0 ] || set -- device_removed_while_connecting no_route new_address_ends_backoff \
	unmount_during_backoff unresolved_neighbour killed_mount_ends_connect \
	${LONG:+silent_peer_times_out}
ktap_run "$@"
